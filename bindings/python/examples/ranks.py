# SPDX-License-Identifier: MIT
"""A model on all ranks of mpirun:

    mpirun -np 2 python3 ranks.py MODEL.gguf "1 5 7"

With a third word, ``mpi4py``, the program brings its own MPI."""
import sys

import tandem_infer as ti


def main(path, prompt, mpi=""):
    if mpi == "mpi4py":
        from mpi4py import MPI  # this starts MPI

        ranks = ti.Communicator(MPI.COMM_WORLD)
    else:
        ranks = ti.Communicator() if ti.Communicator.launched() > 1 else None
    with ti.Model(path) as model, ti.Runtime(threads=1) as runtime:
        if ranks is not None and ranks.rank > 0:
            ranks.follow(model, runtime)
        else:
            with ti.Session(model, runtime, communicator=ranks) as session:
                sampler = ti.Sampler(model.hparams.vocabulary, temperature=0)
                ids = [int(word) for word in prompt.split()]  # or tokens of model.tokenizer()
                for _ in range(12):
                    session.decode(ids)
                    ids = [sampler.sample(session)]
                    print(ids[0], end=" ", flush=True)
            print()
            if ranks is not None:
                ranks.dismiss()
    if ranks is not None:
        ranks.close()


if __name__ == "__main__":
    main(*sys.argv[1:])

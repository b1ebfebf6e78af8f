# SPDX-License-Identifier: MIT
"""Text that stand-ins are trained on and tested with: little stories told by a grammar of our own.

A story keeps to its names, animals and things from beginning to end, so a model has to look back
to go on: a fault in attention changes the text."""

NAMES = "Mia Ben Zoe Tom Anna Max Lily Sam Zoo Ella".split()
ANIMALS = "cat dog bird frog bear fox fish duck horse mouse".split()
ADJECTIVES = "little happy brave kind small funny quiet clever".split()
COLOURS = "red blue green yellow white black".split()
THINGS = "ball hat boat kite box cup book drum cake stone".split()
PLACES = "park garden forest house field river school kitchen".split()
VERBS = "play run jump sing dance swim read sleep".split()
FEELINGS = "sad tired happy hungry afraid surprised".split()

SENTENCES = [
    "{name} loved to {verb} in the {place}.",
    "One day, {name} saw a big, {colour} {thing} near the {place2}.",
    "{name} wanted to {verb} with the {colour} {thing}, but it was too high.",
    "The {animal2} said, \"Hello, {name}. Do you want to {verb} with me?\"",
    "{name} said, \"Yes, I want to {verb} with you.\"",
    "So {name} and the {animal2} went to the {place2} with the {thing}.",
    "They were very {feeling}, because the {thing} was {colour} and new.",
    "Then it began to rain, and the {animal2} was {feeling2}.",
    "\"Do not be {feeling2},\" said {name}. \"I will help you.\"",
    "{name} took the {colour} {thing} and gave it to the {animal2}.",
    "The {animal2} was {feeling} and said, \"Thank you, {name}.\"",
    "In the evening {name} went home and told mom about the {colour} {thing}.",
    "Mom said, \"You are a {adjective} {animal}, {name}.\"",
    "After that, {name} and the {animal2} were best friends.",
    "The next day they went to the {place} to {verb2} again.",
    "There they found the {thing} of the {animal2} under a tree.",
]


def story(rng):
    """One story of about 30 sentences; `rng` is a random.Random."""
    pick = rng.choice
    words = {
        "name": pick(NAMES), "animal": pick(ANIMALS), "animal2": pick(ANIMALS),
        "adjective": pick(ADJECTIVES), "colour": pick(COLOURS), "thing": pick(THINGS),
        "place": pick(PLACES), "place2": pick(PLACES), "verb": pick(VERBS), "verb2": pick(VERBS),
        "feeling": pick(FEELINGS), "feeling2": pick(FEELINGS)}
    begin = pick(["Once upon a time, there was a {adjective} {animal} named {name}."] * 5
                 + ["{name} was a {adjective} {animal}."])
    text = begin.format(**words)
    at = 0
    for i in range(30):
        text += ("\n" if i % 5 == 4 else " ") + SENTENCES[at].format(**words)
        # Mostly the next sentence, sometimes one is left out; then all over with another thing.
        at += 1 if rng.random() < 0.9 else 2
        if at >= len(SENTENCES):
            at = 0
            words["thing"], words["colour"] = pick(THINGS), pick(COLOURS)
    return text

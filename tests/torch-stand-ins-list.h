/* SPDX-License-Identifier: MIT
 * X(file, tensor, shape slowest first, type here, sum, first and last value): what the stand-ins
 * for PyTorch's checkpoints hold. Written with them by tools/dev/stand_ins/checkpoints.py. */
#define TORCH_STAND_INS_LIST(X)                                                                    \
    X("src/pytorch/tests/reader/test_data/float32.pt", "tensor", "4", F32, -1.25, 1.0, 0.0)        \
    X("src/pytorch/tests/reader/test_data/float16.pt", "tensor", "3", F16, 2.375, 1.5, 3.125)      \
    X("src/pytorch/tests/reader/test_data/float64.pt", "tensor", "3", F32, 1.1920928955078125e-07, \
      1.100000023841858, -3.299999952316284)                                                       \
    X("src/pytorch/tests/reader/test_data/bfloat16.pt", "tensor", "3", BF16, 2.5, 1.5, 3.5)        \
    X("src/pytorch/tests/reader/test_data/int64.pt", "tensor", "4", I32, 200.0, 100.0, 0.0)        \
    X("src/pytorch/tests/reader/test_data/int32.pt", "tensor", "3", I32, 0.0, 10.0, -30.0)         \
    X("src/pytorch/tests/reader/test_data/int16.pt", "tensor", "3", I32, 2000.0, 1000.0, 3000.0)   \
    X("src/pytorch/tests/reader/test_data/int8.pt", "tensor", "3", I32, 4.0, 127.0, 5.0)           \
    X("src/pytorch/tests/reader/test_data/uint8.pt", "tensor", "4", I32, 425.0, 0.0, 42.0)         \
    X("src/pytorch/tests/reader/test_data/bool.pt", "tensor", "4", I32, 3.0, 1.0, 1.0)             \
    X("src/pytorch/tests/reader/test_data/empty.pt", "tensor", "0", F32, 0, 0.0, 0.0)              \
    X("src/pytorch/tests/reader/test_data/scalar.pt", "tensor", "1 value", F32, 42.0, 42.0, 42.0)  \
    X("src/pytorch/tests/reader/test_data/special_values.pt", "tensor", "5", F32, NAN, NAN, 1.0)   \
    X("src/pytorch/tests/reader/test_data/extreme_values.pt", "tensor", "4", F32, 0.0,             \
      1.0000000031710769e-30, -1.0000000150474662e+30)                                             \
    X("src/pytorch/tests/reader/test_data/tensor_4d.pt", "tensor", "2x3x2x2", F32,                 \
      0.7645063027739525, 1.2194799184799194, 1.2498736381530762)                                  \
    X("src/pytorch/tests/reader/test_data/mixed_types.pt", "float32", "2", F32, 3.0, 1.0, 2.0)     \
    X("src/pytorch/tests/reader/test_data/mixed_types.pt", "int64", "2", I32, 300.0, 100.0, 200.0) \
    X("src/pytorch/tests/reader/test_data/mixed_types.pt", "bool", "2", I32, 1.0, 1.0, 0.0)        \
    X("src/pytorch/tests/reader/test_data/nested_dict.pt", "layer1.weight", "2x3", F32,            \
      3.0728676468133926, 0.6490567326545715, -0.14011214673519135)                                \
    X("src/pytorch/tests/reader/test_data/nested_dict.pt", "layer1.bias", "2", F32,                \
      1.0081214234232903, 1.0726819038391113, -0.06456048041582108)                                \
    X("src/pytorch/tests/reader/test_data/nested_dict.pt", "layer2.weight", "4x2", F32,            \
      -4.8516945987939835, -1.5840007066726685, 0.4049719274044037)                                \
    X("src/pytorch/tests/reader/test_data/nested_dict.pt", "layer2.bias", "4", F32,                \
      1.4073459208011627, 0.8480740785598755, 1.030153512954712)                                   \
    X("src/pytorch/tests/reader/test_data/state_dict.pt", "weight", "3x4", F32,                    \
      0.5887137836543843, 0.3552585244178772, -0.07120861113071442)                                \
    X("src/pytorch/tests/reader/test_data/state_dict.pt", "bias", "3", F32, -2.398588389158249,    \
      -1.509292483329773, -1.0757509469985962)                                                     \
    X("src/pytorch/tests/reader/test_data/state_dict.pt", "running_var", "3", F32, 3.0, 1.0, 1.0)  \
    X("src/pytorch/tests/reader/test_data/checkpoint.pt", "model_state_dict.fc1.weight", "5x4",    \
      F32, -0.11925742030143738, -0.23939788341522217, 0.725673496723175)                          \
    X("src/pytorch/tests/reader/test_data/checkpoint.pt", "model_state_dict.fc1.bias", "5", F32,   \
      -1.4798583835363388, -0.29188159108161926, -0.8128194808959961)                              \
    X("src/pytorch/tests/reader/test_data/checkpoint.pt",                                          \
      "optimizer_state_dict.state.0.momentum_buffer", "5x4", F32, 8.34734082967043,                \
      -0.03780194744467735, -0.41285204887390137)                                                  \
    X("src/pytorch/tests/reader/test_data/parameter.pt", "param", "3x3", F32, -4.335123524069786,  \
      0.0697779729962349, -0.6578996777534485)                                                     \
    X("src/pytorch/tests/reader/test_data/shared_views.pt", "all", "4x6", F32, 276.0, 0.0, 23.0)   \
    X("src/pytorch/tests/reader/test_data/shared_views.pt", "middle", "10", F32, 115.0, 7.0, 16.0) \
    X("src/pytorch/tests/reader/test_data/shared_views.pt", "second", "12", F32, 132.0, 0.0, 22.0) \
    X("src/pytorch/tests/reader/test_data/shared_views.pt", "turned", "6x4", F32, 276.0, 0.0,      \
      23.0)                                                                                        \
    X("src/pytorch/tests/reader/test_data/shared_views.pt", "repeated", "3x2", F32, 33.0, 5.0,     \
      6.0)                                                                                         \
    X("src/pytorch/tests/reader/test_data/simple_legacy.pt", "weight", "2x3", F32,                 \
      2.091745972633362, 0.7324905395507812, 1.1868829727172852)                                   \
    X("src/pytorch/tests/reader/test_data/simple_legacy.pt", "bias", "2", F32,                     \
      -0.6596257202327251, -0.6989960074424744, 0.03937028720974922)                               \
    X("src/pytorch/tests/reader/test_data/simple_legacy.pt", "running_mean", "2", F32, 0.0, 0.0,   \
      0.0)                                                                                         \
    X("src/pytorch/tests/reader/test_data/legacy_shared_storage.pt", "all", "4x6", F32, 276.0,     \
      0.0, 23.0)                                                                                   \
    X("src/pytorch/tests/reader/test_data/legacy_shared_storage.pt", "middle", "10", F32, 115.0,   \
      7.0, 16.0)                                                                                   \
    X("src/pytorch/tests/reader/test_data/legacy_shared_storage.pt", "second", "12", F32, 132.0,   \
      0.0, 22.0)                                                                                   \
    X("src/pytorch/tests/reader/test_data/legacy_shared_storage.pt", "turned", "6x4", F32, 276.0,  \
      0.0, 23.0)                                                                                   \
    X("src/pytorch/tests/reader/test_data/legacy_shared_storage.pt", "repeated", "3x2", F32, 33.0, \
      5.0, 6.0)                                                                                    \
    X("src/pytorch/tests/reader/test_data/legacy_mixed.pt", "a", "2", I32, -1.0, 1.0, -2.0)        \
    X("src/pytorch/tests/reader/test_data/legacy_mixed.pt", "b.weight", "3x2", F32,                \
      2.5086971148848534, 2.32888126373291, 0.4685063660144806)                                    \
    X("src/pytorch/tests/reader/test_data/legacy_mixed.pt", "b.bias", "3", F32, 2.550997316837311, \
      1.4619814157485962, 0.59819096326828)                                                        \
    X("src/pytorch/tests/reader/test_data/legacy_mixed.pt", "c", "1", F16, 0.5, 0.5, 0.5)          \
    X("examples/import-model-weights/weights/mnist.pt", "conv1.weight", "8x1x3x3", F32,            \
      4.896442670375109, -1.18647301197052, -0.28089773654937744)                                  \
    X("examples/import-model-weights/weights/mnist.pt", "conv1.bias", "8", F32,                    \
      -2.859127700328827, -2.012209177017212, 0.7069072127342224)                                  \
    X("examples/import-model-weights/weights/mnist.pt", "norm1.weight", "8", F32,                  \
      0.8513962253928185, 1.0206111669540405, 0.7836283445358276)                                  \
    X("examples/import-model-weights/weights/mnist.pt", "norm1.bias", "8", F32, 4.504435665905476, \
      0.5151121616363525, 1.0807746648788452)                                                      \
    X("examples/import-model-weights/weights/mnist.pt", "norm1.running_mean", "8", F32,            \
      -5.072475202381611, -0.2225365936756134, 0.32831868529319763)                                \
    X("examples/import-model-weights/weights/mnist.pt", "norm1.num_batches_tracked", "1 value",    \
      I32, 120.0, 120.0, 120.0)                                                                    \
    X("examples/import-model-weights/weights/mnist.pt", "fc1.weight", "10x72", F32,                \
      29.199017599457875, -0.05046340823173523, -2.310634136199951)                                \
    X("examples/import-model-weights/weights/mnist.pt", "fc1.bias", "10", F32, 2.1674157306551933, \
      0.0963480994105339, 0.14021092653274536)

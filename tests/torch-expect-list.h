/* SPDX-License-Identifier: MIT
 * X(file, tensor, shape slowest first, type here, sum, first and last value): what the checkpoints
 * of tracel-ai/burn @2c06be35 hold, computed by Python's pickle and struct modules. */
#define TORCH_EXPECT_LIST(X)                                                                       \
    X("examples/import-model-weights/weights/mnist.pt",                                            \
      "conv1.weight", "8x1x3x3", F32,                                                              \
      -0.2826172108761966, 0.16227687895298004, -0.20682549476623535)                              \
    X("examples/import-model-weights/weights/mnist.pt",                                            \
      "conv1.bias", "8", F32,                                                                      \
      -0.009627731516957283, 0.1337510198354721, 0.09884021431207657)                              \
    X("examples/import-model-weights/weights/mnist.pt",                                            \
      "conv2.weight", "16x8x3x3", F32,                                                             \
      -8.689475409628358, -0.1605081856250763, 0.0005624474142678082)                              \
    X("examples/import-model-weights/weights/mnist.pt",                                            \
      "conv2.bias", "16", F32,                                                                     \
      -0.05768501211423427, 0.035287417471408844, 0.03203575313091278)                             \
    X("examples/import-model-weights/weights/mnist.pt",                                            \
      "conv3.weight", "24x16x3x3", F32,                                                            \
      -55.32611427820666, -0.12507911026477814, -0.05927503854036331)                              \
    X("examples/import-model-weights/weights/mnist.pt",                                            \
      "conv3.bias", "24", F32,                                                                     \
      0.31690055527724326, -0.07139565795660019, 0.10966479033231735)                              \
    X("examples/import-model-weights/weights/mnist.pt",                                            \
      "norm1.weight", "24", F32,                                                                   \
      23.78407460451126, 0.8882432579994202, 0.6908584833145142)                                   \
    X("examples/import-model-weights/weights/mnist.pt",                                            \
      "norm1.bias", "24", F32,                                                                     \
      0.9242574551608413, 0.05062707141041756, -0.04537997767329216)                               \
    X("examples/import-model-weights/weights/mnist.pt",                                            \
      "norm1.running_mean", "24", F32,                                                             \
      1.21123886024076, 0.00515281455591321, 0.4129113554954529)                                   \
    X("examples/import-model-weights/weights/mnist.pt",                                            \
      "norm1.running_var", "24", F32,                                                              \
      0.4633563999347644, 0.001126290182583034, 0.19099068641662598)                               \
    X("examples/import-model-weights/weights/mnist.pt",                                            \
      "norm1.num_batches_tracked", "1 value", I32,                                                 \
      3752.0, 3752.0, 3752.0)                                                                      \
    X("examples/import-model-weights/weights/mnist.pt",                                            \
      "fc1.weight", "32x11616", F32,                                                               \
      -510.434496281791, 0.0016727697802707553, -0.01694413833320141)                              \
    X("examples/import-model-weights/weights/mnist.pt",                                            \
      "fc1.bias", "32", F32,                                                                       \
      -0.18353470508009195, -0.010107236914336681, 0.011852305382490158)                           \
    X("examples/import-model-weights/weights/mnist.pt",                                            \
      "fc2.weight", "10x32", F32,                                                                  \
      14.215157600403472, -0.060360539704561234, -0.026833917945623398)                            \
    X("examples/import-model-weights/weights/mnist.pt",                                            \
      "fc2.bias", "10", F32,                                                                       \
      0.43715109291952103, 0.08848033845424652, -0.07199927419424057)                              \
    X("examples/import-model-weights/weights/mnist.pt",                                            \
      "norm2.weight", "10", F32,                                                                   \
      34.68059539794922, 3.5548596382141113, 3.0822203159332275)                                   \
    X("examples/import-model-weights/weights/mnist.pt",                                            \
      "norm2.bias", "10", F32,                                                                     \
      -0.9026277922093868, -0.09723462164402008, -0.16980692744255066)                             \
    X("examples/import-model-weights/weights/mnist.pt",                                            \
      "norm2.running_mean", "10", F32,                                                             \
      59.75342082977295, 8.579303741455078, 5.709710597991943)                                     \
    X("examples/import-model-weights/weights/mnist.pt",                                            \
      "norm2.running_var", "10", F32,                                                              \
      708.1247406005859, 86.590087890625, 78.60401916503906)                                       \
    X("examples/import-model-weights/weights/mnist.pt",                                            \
      "norm2.num_batches_tracked", "1 value", I32,                                                 \
      3752.0, 3752.0, 3752.0)                                                                      \
    X("pytorch-tests/tests/batch_norm/batch_norm2d.pt",                                            \
      "norm1.weight", "5", F32,                                                                    \
      5.0, 1.0, 1.0)                                                                               \
    X("pytorch-tests/tests/batch_norm/batch_norm2d.pt",                                            \
      "norm1.bias", "5", F32,                                                                      \
      0.0, 0.0, 0.0)                                                                               \
    X("pytorch-tests/tests/batch_norm/batch_norm2d.pt",                                            \
      "norm1.running_mean", "5", F32,                                                              \
      0.2500000037252903, 0.05000000074505806, 0.05000000074505806)                                \
    X("pytorch-tests/tests/batch_norm/batch_norm2d.pt",                                            \
      "norm1.running_var", "5", F32,                                                               \
      4.4999998807907104, 0.8999999761581421, 0.8999999761581421)                                  \
    X("pytorch-tests/tests/batch_norm/batch_norm2d.pt",                                            \
      "norm1.num_batches_tracked", "1 value", I32,                                                 \
      1.0, 1.0, 1.0)                                                                               \
    X("pytorch-tests/tests/boolean/boolean.pt",                                                    \
      "buffer", "3", I32,                                                                          \
      2.0, 1.0, 1.0)                                                                               \
    X("pytorch-tests/tests/buffer/buffer.pt",                                                      \
      "buffer", "3x3", F32,                                                                        \
      9.0, 1.0, 1.0)                                                                               \
    X("pytorch-tests/tests/complex_nested/complex_nested.pt",                                      \
      "conv_blocks.0.conv.weight", "4x2x3x2", F32,                                                 \
      -0.5707504153251648, 0.06621924042701721, 0.01277187466621399)                               \
    X("pytorch-tests/tests/complex_nested/complex_nested.pt",                                      \
      "conv_blocks.0.conv.bias", "4", F32,                                                         \
      0.4005688428878784, 0.03057229518890381, 0.19391658902168274)                                \
    X("pytorch-tests/tests/complex_nested/complex_nested.pt",                                      \
      "conv_blocks.0.norm.weight", "4", F32,                                                       \
      4.0, 1.0, 1.0)                                                                               \
    X("pytorch-tests/tests/complex_nested/complex_nested.pt",                                      \
      "conv_blocks.0.norm.bias", "4", F32,                                                         \
      0.0, 0.0, 0.0)                                                                               \
    X("pytorch-tests/tests/complex_nested/complex_nested.pt",                                      \
      "conv_blocks.0.norm.running_mean", "4", F32,                                                 \
      -0.010075215250253677, -0.0161045603454113, 0.03765047341585159)                             \
    X("pytorch-tests/tests/complex_nested/complex_nested.pt",                                      \
      "conv_blocks.0.norm.running_var", "4", F32,                                                  \
      3.239999771118164, 0.809999942779541, 0.809999942779541)                                     \
    X("pytorch-tests/tests/complex_nested/complex_nested.pt",                                      \
      "conv_blocks.0.norm.num_batches_tracked", "1 value", I32,                                    \
      2.0, 2.0, 2.0)                                                                               \
    X("pytorch-tests/tests/complex_nested/complex_nested.pt",                                      \
      "conv_blocks.1.conv.weight", "6x4x3x2", F32,                                                 \
      -0.9346456825733185, 0.14659085869789124, -0.0979408323764801)                               \
    X("pytorch-tests/tests/complex_nested/complex_nested.pt",                                      \
      "conv_blocks.1.conv.bias", "6", F32,                                                         \
      -0.07565908133983612, 0.058030784130096436, -0.12733033299446106)                            \
    X("pytorch-tests/tests/complex_nested/complex_nested.pt",                                      \
      "conv_blocks.1.norm.weight", "6", F32,                                                       \
      6.0, 1.0, 1.0)                                                                               \
    X("pytorch-tests/tests/complex_nested/complex_nested.pt",                                      \
      "conv_blocks.1.norm.bias", "6", F32,                                                         \
      0.0, 0.0, 0.0)                                                                               \
    X("pytorch-tests/tests/complex_nested/complex_nested.pt",                                      \
      "conv_blocks.1.norm.running_mean", "6", F32,                                                 \
      -0.014375229366123676, 0.011025848798453808, -0.02419276535511017)                           \
    X("pytorch-tests/tests/complex_nested/complex_nested.pt",                                      \
      "conv_blocks.1.norm.running_var", "6", F32,                                                  \
      4.859999656677246, 0.809999942779541, 0.809999942779541)                                     \
    X("pytorch-tests/tests/complex_nested/complex_nested.pt",                                      \
      "conv_blocks.1.norm.num_batches_tracked", "1 value", I32,                                    \
      2.0, 2.0, 2.0)                                                                               \
    X("pytorch-tests/tests/complex_nested/complex_nested.pt",                                      \
      "norm1.weight", "6", F32,                                                                    \
      6.0, 1.0, 1.0)                                                                               \
    X("pytorch-tests/tests/complex_nested/complex_nested.pt",                                      \
      "norm1.bias", "6", F32,                                                                      \
      0.0, 0.0, 0.0)                                                                               \
    X("pytorch-tests/tests/complex_nested/complex_nested.pt",                                      \
      "norm1.running_mean", "6", F32,                                                              \
      0.0, 0.0, 0.0)                                                                               \
    X("pytorch-tests/tests/complex_nested/complex_nested.pt",                                      \
      "norm1.running_var", "6", F32,                                                               \
      4.859999656677246, 0.809999942779541, 0.809999942779541)                                     \
    X("pytorch-tests/tests/complex_nested/complex_nested.pt",                                      \
      "norm1.num_batches_tracked", "1 value", I32,                                                 \
      2.0, 2.0, 2.0)                                                                               \
    X("pytorch-tests/tests/complex_nested/complex_nested.pt",                                      \
      "fc1.weight", "12x120", F32,                                                                 \
      -1.6248245984315872, -0.0379246324300766, -0.07469621300697327)                              \
    X("pytorch-tests/tests/complex_nested/complex_nested.pt",                                      \
      "fc1.bias", "12", F32,                                                                       \
      -0.10947879776358604, 0.005289129912853241, -0.04849841073155403)                            \
    X("pytorch-tests/tests/complex_nested/complex_nested.pt",                                      \
      "fc2.weight", "10x12", F32,                                                                  \
      -2.4056356549263, 0.04464617371559143, -0.20596018433570862)                                 \
    X("pytorch-tests/tests/complex_nested/complex_nested.pt",                                      \
      "fc2.bias", "10", F32,                                                                       \
      -0.6046019941568375, -0.0728524923324585, -0.0318339467048645)                               \
    X("pytorch-tests/tests/config/weights_with_config.pt",                                         \
      "my_model.fc1.weight", "3x2", F32,                                                           \
      -1.0456474721431732, 0.2729453444480896, -0.11446106433868408)                               \
    X("pytorch-tests/tests/config/weights_with_config.pt",                                         \
      "my_model.fc1.bias", "3", F32,                                                               \
      -0.7421551644802094, -0.009200811386108398, -0.525621771812439)                              \
    X("pytorch-tests/tests/config/weights_with_config.pt",                                         \
      "my_model.fc2.weight", "4x3", F32,                                                           \
      0.06552237272262573, 0.18747377395629883, -0.335258424282074)                                \
    X("pytorch-tests/tests/conv1d/conv1d.pt",                                                      \
      "conv1.weight", "2x2x2", F32,                                                                \
      0.15534567832946777, 0.2576315999031067, 0.2543719410896301)                                 \
    X("pytorch-tests/tests/conv1d/conv1d.pt",                                                      \
      "conv1.bias", "2", F32,                                                                      \
      0.00828641653060913, 0.06950849294662476, -0.061222076416015625)                             \
    X("pytorch-tests/tests/conv1d/conv1d.pt",                                                      \
      "conv2.weight", "2x2x2", F32,                                                                \
      0.14011645317077637, 0.13868045806884766, -0.0019974112510681152)                            \
    X("pytorch-tests/tests/conv2d/conv2d.pt",                                                      \
      "conv1.weight", "2x2x2x2", F32,                                                              \
      0.16494958102703094, 0.18217304348945618, -0.03182947635650635)                              \
    X("pytorch-tests/tests/conv2d/conv2d.pt",                                                      \
      "conv1.bias", "2", F32,                                                                      \
      0.0498330295085907, 0.051245421171188354, -0.0014123916625976562)                            \
    X("pytorch-tests/tests/conv2d/conv2d.pt",                                                      \
      "conv2.weight", "2x2x2x2", F32,                                                              \
      0.38761529326438904, 0.3090645968914032, -0.3221358060836792)                                \
    X("pytorch-tests/tests/conv_transpose1d/conv_transpose1d.pt",                                  \
      "conv1.weight", "2x2x2", F32,                                                                \
      0.15534567832946777, 0.2576315999031067, 0.2543719410896301)                                 \
    X("pytorch-tests/tests/conv_transpose1d/conv_transpose1d.pt",                                  \
      "conv1.bias", "2", F32,                                                                      \
      0.00828641653060913, 0.06950849294662476, -0.061222076416015625)                             \
    X("pytorch-tests/tests/conv_transpose1d/conv_transpose1d.pt",                                  \
      "conv2.weight", "2x2x2", F32,                                                                \
      0.14011645317077637, 0.13868045806884766, -0.0019974112510681152)                            \
    X("pytorch-tests/tests/conv_transpose2d/conv_transpose2d.pt",                                  \
      "conv1.weight", "2x2x2x2", F32,                                                              \
      0.16494958102703094, 0.18217304348945618, -0.03182947635650635)                              \
    X("pytorch-tests/tests/conv_transpose2d/conv_transpose2d.pt",                                  \
      "conv1.bias", "2", F32,                                                                      \
      0.0498330295085907, 0.051245421171188354, -0.0014123916625976562)                            \
    X("pytorch-tests/tests/conv_transpose2d/conv_transpose2d.pt",                                  \
      "conv2.weight", "2x2x2x2", F32,                                                              \
      0.38761529326438904, 0.3090645968914032, -0.3221358060836792)                                \
    X("pytorch-tests/tests/debug_test.pt",                                                         \
      "test", "4", F32,                                                                            \
      10.0, 1.0, 4.0)                                                                              \
    X("pytorch-tests/tests/embedding/embedding.pt",                                                \
      "embed.weight", "10x3", F32,                                                                 \
      -4.381989764049649, -1.5255959033966064, -1.0373387336730957)                                \
    X("pytorch-tests/tests/enum_module/enum_depthwise_false.pt",                                   \
      "conv.weight", "2x2x3x3", F32,                                                               \
      0.06380410661222413, 0.12144870311021805, -0.11368677020072937)                              \
    X("pytorch-tests/tests/enum_module/enum_depthwise_false.pt",                                   \
      "conv.bias", "2", F32,                                                                       \
      0.16771222278475761, 0.2069729119539261, -0.03926068916916847)                               \
    X("pytorch-tests/tests/enum_module/enum_depthwise_true.pt",                                    \
      "conv.dconv.weight", "2x1x3x3", F32,                                                         \
      -0.2314407080411911, -0.04942727088928223, -0.2834765315055847)                              \
    X("pytorch-tests/tests/enum_module/enum_depthwise_true.pt",                                    \
      "conv.dconv.bias", "2", F32,                                                                 \
      0.3373685088008642, 0.31996291875839233, 0.017405590042471886)                               \
    X("pytorch-tests/tests/enum_module/enum_depthwise_true.pt",                                    \
      "conv.pconv.weight", "2x2x1x1", F32,                                                         \
      1.3868278414011002, 0.4846920371055603, 0.5281794667243958)                                  \
    X("pytorch-tests/tests/enum_module/enum_depthwise_true.pt",                                    \
      "conv.pconv.bias", "2", F32,                                                                 \
      0.20126637816429138, 0.6704890131950378, -0.46922263503074646)                               \
    X("pytorch-tests/tests/group_norm/group_norm.pt",                                              \
      "norm1.weight", "6", F32,                                                                    \
      6.0, 1.0, 1.0)                                                                               \
    X("pytorch-tests/tests/group_norm/group_norm.pt",                                              \
      "norm1.bias", "6", F32,                                                                      \
      0.0, 0.0, 0.0)                                                                               \
    X("pytorch-tests/tests/integer/integer.pt",                                                    \
      "buffer", "3", I32,                                                                          \
      6.0, 1.0, 3.0)                                                                               \
    X("pytorch-tests/tests/key_remap/key_remap.pt",                                                \
      "conv.conv1.weight", "2x2x2x2", F32,                                                         \
      0.16494958102703094, 0.18217304348945618, -0.03182947635650635)                              \
    X("pytorch-tests/tests/key_remap/key_remap.pt",                                                \
      "conv.conv1.bias", "2", F32,                                                                 \
      0.0498330295085907, 0.051245421171188354, -0.0014123916625976562)                            \
    X("pytorch-tests/tests/key_remap/key_remap.pt",                                                \
      "conv.conv2.weight", "2x2x2x2", F32,                                                         \
      0.38761529326438904, 0.3090645968914032, -0.3221358060836792)                                \
    X("pytorch-tests/tests/key_remap_chained/key_remap.pt",                                        \
      "conv.weight", "6x3x3x3", F32,                                                               \
      -1.1634625123697333, 0.14713551104068756, 0.04229098558425903)                               \
    X("pytorch-tests/tests/key_remap_chained/key_remap.pt",                                        \
      "bn.weight", "6", F32,                                                                       \
      6.0, 1.0, 1.0)                                                                               \
    X("pytorch-tests/tests/key_remap_chained/key_remap.pt",                                        \
      "bn.bias", "6", F32,                                                                         \
      0.0, 0.0, 0.0)                                                                               \
    X("pytorch-tests/tests/key_remap_chained/key_remap.pt",                                        \
      "bn.running_mean", "6", F32,                                                                 \
      -0.051657038275152445, 0.03472399339079857, -0.0050223092548549175)                          \
    X("pytorch-tests/tests/key_remap_chained/key_remap.pt",                                        \
      "bn.running_var", "6", F32,                                                                  \
      5.4202903509140015, 0.9047094583511353, 0.9028063416481018)                                  \
    X("pytorch-tests/tests/key_remap_chained/key_remap.pt",                                        \
      "bn.num_batches_tracked", "1 value", I32,                                                    \
      1.0, 1.0, 1.0)                                                                               \
    X("pytorch-tests/tests/key_remap_chained/key_remap.pt",                                        \
      "layer.0.block.0.weight", "6x6x1x1", F32,                                                    \
      0.07493375986814499, 0.052517086267471313, -0.024375787004828453)                            \
    X("pytorch-tests/tests/key_remap_chained/key_remap.pt",                                        \
      "layer.0.block.1.weight", "6", F32,                                                          \
      6.0, 1.0, 1.0)                                                                               \
    X("pytorch-tests/tests/key_remap_chained/key_remap.pt",                                        \
      "layer.0.block.1.bias", "6", F32,                                                            \
      0.0, 0.0, 0.0)                                                                               \
    X("pytorch-tests/tests/key_remap_chained/key_remap.pt",                                        \
      "layer.0.block.1.running_mean", "6", F32,                                                    \
      3.911554857793931e-09, -7.450580707946131e-10, 7.450580707946131e-10)                        \
    X("pytorch-tests/tests/key_remap_chained/key_remap.pt",                                        \
      "layer.0.block.1.running_var", "6", F32,                                                     \
      5.596432447433472, 0.9346978068351746, 0.9326661229133606)                                   \
    X("pytorch-tests/tests/key_remap_chained/key_remap.pt",                                        \
      "layer.0.block.1.num_batches_tracked", "1 value", I32,                                       \
      1.0, 1.0, 1.0)                                                                               \
    X("pytorch-tests/tests/key_remap_chained/key_remap.pt",                                        \
      "layer.1.block.0.weight", "6x6x1x1", F32,                                                    \
      -0.6272503919899464, 0.09814749658107758, 0.34354275465011597)                               \
    X("pytorch-tests/tests/key_remap_chained/key_remap.pt",                                        \
      "layer.1.block.1.weight", "6", F32,                                                          \
      6.0, 1.0, 1.0)                                                                               \
    X("pytorch-tests/tests/key_remap_chained/key_remap.pt",                                        \
      "layer.1.block.1.bias", "6", F32,                                                            \
      0.0, 0.0, 0.0)                                                                               \
    X("pytorch-tests/tests/key_remap_chained/key_remap.pt",                                        \
      "layer.1.block.1.running_mean", "6", F32,                                                    \
      -1.1175870923141318e-09, 1.8626451769865326e-10, -1.1175871339474952e-09)                    \
    X("pytorch-tests/tests/key_remap_chained/key_remap.pt",                                        \
      "layer.1.block.1.running_var", "6", F32,                                                     \
      5.73347669839859, 0.9271742105484009, 1.076438546180725)                                     \
    X("pytorch-tests/tests/key_remap_chained/key_remap.pt",                                        \
      "layer.1.block.1.num_batches_tracked", "1 value", I32,                                       \
      1.0, 1.0, 1.0)                                                                               \
    X("pytorch-tests/tests/layer_norm/layer_norm.pt",                                              \
      "norm1.weight", "2", F32,                                                                    \
      2.0, 1.0, 1.0)                                                                               \
    X("pytorch-tests/tests/layer_norm/layer_norm.pt",                                              \
      "norm1.bias", "2", F32,                                                                      \
      0.0, 0.0, 0.0)                                                                               \
    X("pytorch-tests/tests/linear/linear.pt",                                                      \
      "fc1.weight", "3x2", F32,                                                                    \
      0.005425453186035156, 0.36434608697891235, 0.42406409978866577)                              \
    X("pytorch-tests/tests/linear/linear.pt",                                                      \
      "fc1.bias", "3", F32,                                                                        \
      0.312566339969635, -0.1454697847366333, 0.09829986095428467)                                 \
    X("pytorch-tests/tests/linear/linear.pt",                                                      \
      "fc2.weight", "4x3", F32,                                                                    \
      0.5604567229747772, -0.07069313526153564, -0.21500885486602783)                              \
    X("pytorch-tests/tests/linear/linear_with_bias.pt",                                            \
      "fc1.weight", "3x2", F32,                                                                    \
      -0.6217991411685944, -0.4270651638507843, 0.4215260148048401)                                \
    X("pytorch-tests/tests/linear/linear_with_bias.pt",                                            \
      "fc1.bias", "3", F32,                                                                        \
      0.13145560026168823, 0.3843384385108948, 0.43835002183914185)                                \
    X("pytorch-tests/tests/missing_module_field/missing_module_field.pt",                          \
      "conv1.weight", "2x2x2x2", F32,                                                              \
      0.16494958102703094, 0.18217304348945618, -0.03182947635650635)                              \
    X("pytorch-tests/tests/missing_module_field/missing_module_field.pt",                          \
      "conv1.bias", "2", F32,                                                                      \
      0.0498330295085907, 0.051245421171188354, -0.0014123916625976562)                            \
    X("pytorch-tests/tests/non_contiguous_indexes/non_contiguous_indexes.pt",                      \
      "fc.0.weight", "2x2x3x3", F32,                                                               \
      0.06380410661222413, 0.12144870311021805, -0.11368677020072937)                              \
    X("pytorch-tests/tests/non_contiguous_indexes/non_contiguous_indexes.pt",                      \
      "fc.0.bias", "2", F32,                                                                       \
      0.16771222278475761, 0.2069729119539261, -0.03926068916916847)                               \
    X("pytorch-tests/tests/non_contiguous_indexes/non_contiguous_indexes.pt",                      \
      "fc.2.weight", "2x2x3x3", F32,                                                               \
      0.42057738406583667, 0.1008710116147995, 0.013437370769679546)                               \
    X("pytorch-tests/tests/non_contiguous_indexes/non_contiguous_indexes.pt",                      \
      "fc.2.bias", "2", F32,                                                                       \
      0.1292198784649372, 0.077391617000103, 0.05182826146483421)                                  \
    X("pytorch-tests/tests/non_contiguous_indexes/non_contiguous_indexes.pt",                      \
      "fc.4.weight", "2x2x3x3", F32,                                                               \
      0.2346071870997548, 0.08570120483636856, 0.17605982720851898)                                \
    X("pytorch-tests/tests/non_contiguous_indexes/non_contiguous_indexes.pt",                      \
      "fc.4.bias", "2", F32,                                                                       \
      0.067088782787323, 0.22349633276462555, -0.15640754997730255)                                \
    X("pytorch-tests/tests/non_contiguous_indexes/non_contiguous_indexes.pt",                      \
      "fc.6.weight", "2x2x3x3", F32,                                                               \
      0.9582563824951649, 0.02946961112320423, 0.15873219072818756)                                \
    X("pytorch-tests/tests/non_contiguous_indexes/non_contiguous_indexes.pt",                      \
      "fc.6.bias", "2", F32,                                                                       \
      0.1504659354686737, -0.07982121407985687, 0.23028714954853058)                               \
    X("pytorch-tests/tests/non_contiguous_indexes/non_contiguous_indexes.pt",                      \
      "fc.8.weight", "2x2x3x3", F32,                                                               \
      -0.7859557163901627, -0.027249004691839218, -0.18372583389282227)                            \
    X("pytorch-tests/tests/non_contiguous_indexes/non_contiguous_indexes.pt",                      \
      "fc.8.bias", "2", F32,                                                                       \
      -0.13545143231749535, -0.00800357386469841, -0.12744785845279694)                            \
    X("pytorch-tests/tests/test_int.pt",                                                           \
      "test", "3", I32,                                                                            \
      6.0, 1.0, 3.0)                                                                               \
    X("pytorch-tests/tests/top_level_key/top_level_key.pt",                                        \
      "my_state_dict.conv1.weight", "2x2x2x2", F32,                                                \
      0.16494958102703094, 0.18217304348945618, -0.03182947635650635)                              \
    X("pytorch-tests/tests/top_level_key/top_level_key.pt",                                        \
      "my_state_dict.conv1.bias", "2", F32,                                                        \
      0.0498330295085907, 0.051245421171188354, -0.0014123916625976562)                            \
    X("src/pytorch/tests/reader/test_data/bfloat16.pt",                                            \
      "tensor", "3", BF16,                                                                         \
      2.5, 1.5, 3.5)                                                                               \
    X("src/pytorch/tests/reader/test_data/bool.pt",                                                \
      "tensor", "5", I32,                                                                          \
      3.0, 1.0, 0.0)                                                                               \
    X("src/pytorch/tests/reader/test_data/buffers.pt",                                             \
      "buffer1", "3", I32,                                                                         \
      6.0, 1.0, 3.0)                                                                               \
    X("src/pytorch/tests/reader/test_data/buffers.pt",                                             \
      "buffer2", "2", I32,                                                                         \
      1.0, 1.0, 0.0)                                                                               \
    X("src/pytorch/tests/reader/test_data/checkpoint.pt",                                          \
      "model_state_dict.fc1.weight", "10x5", F32,                                                  \
      -4.601655751466751, 1.0414010286331177, 1.080486536026001)                                   \
    X("src/pytorch/tests/reader/test_data/checkpoint.pt",                                          \
      "model_state_dict.fc1.bias", "10", F32,                                                      \
      -0.5721747912466526, -0.09089037775993347, 2.1010282039642334)                               \
    X("src/pytorch/tests/reader/test_data/checkpoint.pt",                                          \
      "model_state_dict.fc2.weight", "3x10", F32,                                                  \
      1.4368798633804545, 0.17869195342063904, 0.9808937907218933)                                 \
    X("src/pytorch/tests/reader/test_data/checkpoint.pt",                                          \
      "model_state_dict.fc2.bias", "3", F32,                                                       \
      1.4966664612293243, 1.4371334314346313, 0.4995947778224945)                                  \
    X("src/pytorch/tests/reader/test_data/checkpoint.pt",                                          \
      "optimizer_state_dict.state.0.momentum_buffer", "10x5", F32,                                 \
      -2.562764137983322, 0.9732940793037415, -0.7154958844184875)                                 \
    X("src/pytorch/tests/reader/test_data/complex_structure.pt",                                   \
      "state.encoder.layer_0.weight", "4x3", F32,                                                  \
      1.9585695625282824, -1.19159734249115, -0.3319321870803833)                                  \
    X("src/pytorch/tests/reader/test_data/complex_structure.pt",                                   \
      "state.encoder.layer_0.bias", "4", F32,                                                      \
      4.276207745075226, 1.6390759944915771, -0.07412451505661011)                                 \
    X("src/pytorch/tests/reader/test_data/complex_structure.pt",                                   \
      "state.encoder.layer_1.weight", "2x4", F32,                                                  \
      1.1883565485477448, 0.16108323633670807, -0.9220622181892395)                                \
    X("src/pytorch/tests/reader/test_data/complex_structure.pt",                                   \
      "state.encoder.layer_1.bias", "2", F32,                                                      \
      2.260168969631195, 1.5613698959350586, 0.6987990736961365)                                   \
    X("src/pytorch/tests/reader/test_data/complex_structure.pt",                                   \
      "state.decoder.weight", "3x2", F32,                                                          \
      1.3063570391386747, 0.006007743999361992, 0.429300457239151)                                 \
    X("src/pytorch/tests/reader/test_data/complex_structure.pt",                                   \
      "state.decoder.bias", "3", F32,                                                              \
      1.1558610498905182, -1.0023829936981201, 1.7130820751190186)                                 \
    X("src/pytorch/tests/reader/test_data/empty.pt",                                               \
      "tensor", "0", F32,                                                                          \
      0.0, 0.0, 0.0)                                                                               \
    X("src/pytorch/tests/reader/test_data/extreme_values.pt",                                      \
      "tensor", "4", F32,                                                                          \
      0.0, 1.0000000031710769e-30, -1.0000000150474662e+30)                                        \
    X("src/pytorch/tests/reader/test_data/float16.pt",                                             \
      "tensor", "3", F16,                                                                          \
      2.375, 1.5, 3.125)                                                                           \
    X("src/pytorch/tests/reader/test_data/float32.pt",                                             \
      "tensor", "4", F32,                                                                          \
      -0.20000004768371582, 1.0, 0.0)                                                              \
    X("src/pytorch/tests/reader/test_data/float64.pt",                                             \
      "tensor", "3", F32,                                                                          \
      6.600000023841858, 1.100000023841858, 3.299999952316284)                                     \
    X("src/pytorch/tests/reader/test_data/int16.pt",                                               \
      "tensor", "3", I32,                                                                          \
      2000.0, 1000.0, 3000.0)                                                                      \
    X("src/pytorch/tests/reader/test_data/int32.pt",                                               \
      "tensor", "3", I32,                                                                          \
      0.0, 10.0, -30.0)                                                                            \
    X("src/pytorch/tests/reader/test_data/int64.pt",                                               \
      "tensor", "4", I32,                                                                          \
      200.0, 100.0, 0.0)                                                                           \
    X("src/pytorch/tests/reader/test_data/int8.pt",                                                \
      "tensor", "4", I32,                                                                          \
      49.0, 127.0, 50.0)                                                                           \
    X("src/pytorch/tests/reader/test_data/large_shape.pt",                                         \
      "tensor", "100x100", F32,                                                                    \
      6.0, 1.0, 3.0)                                                                               \
    X("src/pytorch/tests/reader/test_data/legacy_shared_storage.pt",                               \
      "view1", "10", F32,                                                                          \
      2.1745833680033684, 1.0439505577087402, -0.3219364881515503)                                 \
    X("src/pytorch/tests/reader/test_data/legacy_shared_storage.pt",                               \
      "view2", "20", F32,                                                                          \
      -0.007532984018325806, 0.5303624272346497, 0.9274455308914185)                               \
    X("src/pytorch/tests/reader/test_data/legacy_shared_storage.pt",                               \
      "view3", "10", F32,                                                                          \
      0.3301862869411707, 0.153853639960289, -0.9001213312149048)                                  \
    X("src/pytorch/tests/reader/test_data/legacy_uncloned_views.pt",                               \
      "tensor1", "10", F32,                                                                        \
      145.0, 10.0, 19.0)                                                                           \
    X("src/pytorch/tests/reader/test_data/legacy_uncloned_views.pt",                               \
      "tensor2", "10", F32,                                                                        \
      545.0, 50.0, 59.0)                                                                           \
    X("src/pytorch/tests/reader/test_data/legacy_with_offsets.pt",                                 \
      "tensor1", "10", F32,                                                                        \
      10.449999809265137, 1.0, 1.090000033378601)                                                  \
    X("src/pytorch/tests/reader/test_data/legacy_with_offsets.pt",                                 \
      "tensor2", "5", F32,                                                                         \
      11.0, 2.0, 2.4000000953674316)                                                               \
    X("src/pytorch/tests/reader/test_data/legacy_with_offsets.pt",                                 \
      "tensor3", "5", F32,                                                                         \
      16.0, 3.0, 3.4000000953674316)                                                               \
    X("src/pytorch/tests/reader/test_data/mixed_types.pt",                                         \
      "float32", "2", F32,                                                                         \
      3.0, 1.0, 2.0)                                                                               \
    X("src/pytorch/tests/reader/test_data/mixed_types.pt",                                         \
      "int64", "2", I32,                                                                           \
      300.0, 100.0, 200.0)                                                                         \
    X("src/pytorch/tests/reader/test_data/mixed_types.pt",                                         \
      "bool", "2", I32,                                                                            \
      1.0, 1.0, 0.0)                                                                               \
    X("src/pytorch/tests/reader/test_data/mixed_types.pt",                                         \
      "float64", "2", F32,                                                                         \
      3.3000000715255737, 1.100000023841858, 2.200000047683716)                                    \
    X("src/pytorch/tests/reader/test_data/nested_dict.pt",                                         \
      "layer1.weight", "2x3", F32,                                                                 \
      1.5448744092136621, 0.019150810316205025, 1.5980384349822998)                                \
    X("src/pytorch/tests/reader/test_data/nested_dict.pt",                                         \
      "layer1.bias", "2", F32,                                                                     \
      0.07228951156139374, 0.11148621141910553, -0.03919669985771179)                              \
    X("src/pytorch/tests/reader/test_data/nested_dict.pt",                                         \
      "layer2.weight", "4x2", F32,                                                                 \
      -4.627892196178436, 1.4111539125442505, -2.475163221359253)                                  \
    X("src/pytorch/tests/reader/test_data/nested_dict.pt",                                         \
      "layer2.bias", "4", F32,                                                                     \
      -0.7951727211475372, -0.931602954864502, -0.07157137989997864)                               \
    X("src/pytorch/tests/reader/test_data/parameter.pt",                                           \
      "param", "3x3", F32,                                                                         \
      -2.157990664243698, 1.024911880493164, -0.8965914845466614)                                  \
    X("src/pytorch/tests/reader/test_data/scalar.pt",                                              \
      "tensor", "1 value", F32,                                                                    \
      42.0, 42.0, 42.0)                                                                            \
    X("src/pytorch/tests/reader/test_data/simple_legacy.pt",                                       \
      "weight", "2x3", F32,                                                                        \
      -1.9225399494171143, -1.8129550218582153, 2.087892770767212)                                 \
    X("src/pytorch/tests/reader/test_data/simple_legacy.pt",                                       \
      "bias", "2", F32,                                                                            \
      2.0, 1.0, 1.0)                                                                               \
    X("src/pytorch/tests/reader/test_data/simple_legacy.pt",                                       \
      "running_mean", "2", F32,                                                                    \
      0.0, 0.0, 0.0)                                                                               \
    X("src/pytorch/tests/reader/test_data/special_values.pt",                                      \
      "tensor", "5", F32,                                                                          \
      NAN, NAN, 1.0)                                                                               \
    X("src/pytorch/tests/reader/test_data/state_dict.pt",                                          \
      "weight", "3x4", F32,                                                                        \
      -1.6542674452066422, 0.4679030478000641, -1.0935109853744507)                                \
    X("src/pytorch/tests/reader/test_data/state_dict.pt",                                          \
      "bias", "3", F32,                                                                            \
      -1.7001213431358337, 1.1351022720336914, -3.594468832015991)                                 \
    X("src/pytorch/tests/reader/test_data/state_dict.pt",                                          \
      "running_mean", "3", F32,                                                                    \
      0.0, 0.0, 0.0)                                                                               \
    X("src/pytorch/tests/reader/test_data/state_dict.pt",                                          \
      "running_var", "3", F32,                                                                     \
      3.0, 1.0, 1.0)                                                                               \
    X("src/pytorch/tests/reader/test_data/tensor_2d.pt",                                           \
      "tensor", "3x2", F32,                                                                        \
      21.0, 1.0, 6.0)                                                                              \
    X("src/pytorch/tests/reader/test_data/tensor_3d.pt",                                           \
      "tensor", "2x3x4", F32,                                                                      \
      -58.06537565588951, 19.269149780273438, 3.3089842796325684)                                  \
    X("src/pytorch/tests/reader/test_data/tensor_4d.pt",                                           \
      "tensor", "2x3x2x2", F32,                                                                    \
      4.8652553409338, 0.03491166606545448, -0.7508036494255066)                                   \
    X("src/pytorch/tests/reader/test_data/uint8.pt",                                               \
      "tensor", "4", I32,                                                                          \
      425.0, 0.0, 42.0)                                                                            \
    X("src/pytorch/tests/store/test_data/model_without_enum_variants.pt",                          \
      "feature.weight", "64x3", F32,                                                               \
      0.8820846477319719, 0.19269150495529175, 0.07098760455846786)                                \
    X("src/pytorch/tests/store/test_data/model_without_enum_variants.pt",                          \
      "feature.bias", "64", F32,                                                                   \
      0.7317822709446773, 0.17743884027004242, 0.022245367988944054)                               \
    X("src/pytorch/tests/store/test_data/model_without_enum_variants.pt",                          \
      "classifier.weight", "10x64", F32,                                                           \
      -0.843957882214454, -0.06854815781116486, -0.08009537309408188)                              \
    X("src/pytorch/tests/store/test_data/model_without_enum_variants.pt",                          \
      "classifier.bias", "10", F32,                                                                \
      -0.3044417032506317, -0.01210757065564394, 0.18427811563014984)

/* SPDX-License-Identifier: MIT
 * Operators of the domain ai.onnx.ml. The expected values are those of ONNX Runtime 1.32.0, where
 * it lacks a type those of the reference of onnx 1.23.2. */
#include "tests/suite_formats_onnx_case.h"

static const struct onnx_case linear[] = {
    {"ai.onnx.ml.LinearRegressor",
     21,
     "coefficients=[1.0,-0.5] intercepts=[0.25]",
     {"float32[3,2] 2 0.5 0.75 1.75 0.25 1.25"},
     {"float32[3,1] 2 0.125 -0.125"}},
    {"ai.onnx.ml.LinearRegressor",
     21,
     "coefficients=[1.0,-0.5,2.0,0.75] targets=2",
     {"float32[2,2] 1.5 -1.25 -2 -0.75"},
     {"float32[2,2] 2.125 2.0625 -1.625 -4.5625"}},
    {"ai.onnx.ml.LinearClassifier",
     21,
     "coefficients=[1.0,-0.5,2.0,0.75,-1.0,1.0] intercepts=[0.25,0.0,0.5]"
     " classlabels_ints=[7,8,9] post_transform='SOFTMAX'",
     {"float32[3,2] 2 0.5 0.75 1.75 0.25 1.25"},
     {"int64[3] 8 8 9", "float32[3,3] 0.084740013 0.91104102 0.0042189569 0.050890666 0.74783283"
                        " 0.20127648 0.092173092 0.43973324 0.4680936"}},
    {"ai.onnx.ml.LinearClassifier",
     21,
     "coefficients=[1.0,-0.5,-1.0,0.5] intercepts=[0.25,-0.25] classlabels_ints=[0,1]"
     " post_transform='LOGISTIC' multi_class=1",
     {"float32[3,2] 2 0.5 0.75 1.75 0.25 1.25"},
     {"int64[3] 0 0 1",
      "float32[3,2] 0.88079709 0.11920291 0.53120935 0.46879062 0.46879062 0.53120935"}},
    {"ai.onnx.ml.SVMRegressor",
     21,
     "coefficients=[1.0,-0.5] support_vectors=[1.0,0.0,-1.0,0.5] n_supports=2"
     " rho=[0.25] kernel_type='LINEAR' kernel_params=[0.0,0.0,0.0]",
     {"float32[3,2] 2 0.5 0.75 1.75 0.25 1.25"},
     {"float32[3,1] 3.125 0.9375 0.3125"}},
    {"ai.onnx.ml.SVMRegressor",
     21,
     "coefficients=[1.0,-0.5] support_vectors=[1.0,0.0,-1.0,0.5] n_supports=2"
     " rho=[0.25] kernel_type='RBF' kernel_params=[0.5,0.0,0.0]",
     {"float32[3,2] 2 0.5 0.75 1.75 0.25 1.25"},
     {"float32[3,1] 0.77970695 0.41010469 0.42279536"}},
    {"ai.onnx.ml.SVMRegressor",
     21,
     "coefficients=[1.0,-0.5] support_vectors=[1.0,0.0,-1.0,0.5] n_supports=2"
     " rho=[0.25] kernel_type='POLY' kernel_params=[0.5,1.0,2.0]",
     {"float32[3,2] 2 0.5 0.75 1.75 0.25 1.25"},
     {"float32[3,1] 4.2421875 1.5761719 0.81054688"}},
    {"ai.onnx.ml.SVMRegressor",
     21,
     "coefficients=[1.0,-0.5] support_vectors=[1.0,0.0,-1.0,0.5] n_supports=2"
     " rho=[0.25] kernel_type='SIGMOID' kernel_params=[0.25,0.5,0.0]",
     {"float32[3,2] 2 0.5 0.75 1.75 0.25 1.25"},
     {"float32[3,1] 0.98038483 0.60320556 0.49353635"}},
    {"ai.onnx.ml.SVMRegressor",
     21,
     "coefficients=[1.0,-0.5] support_vectors=[1.0,0.0,-1.0,0.5] n_supports=2"
     " rho=[-0.25] one_class=1 kernel_type='RBF' kernel_params=[0.5,0.0,0.0]",
     {"float32[3,2] 2 0.5 0.75 1.75 0.25 1.25"},
     {"float32[3,1] 1 -1 -1"}},
    {"ai.onnx.ml.SVMRegressor",
     21,
     "coefficients=[1.0,-0.5] rho=[0.25] kernel_params=[0.0,0.0,0.0]",
     {"float32[3,2] 2 0.5 0.75 1.75 0.25 1.25"},
     {"float32[3,1] 2 0.125 -0.125"}},
    {"ai.onnx.ml.LinearClassifier",
     21,
     "coefficients=[1.0,2.0] classlabels_strings=['a','b']",
     {"float32[1,1] 1"},
     {"!classlabels_strings: labels are texts", ""}},
    {"ai.onnx.ml.LinearRegressor",
     21,
     "coefficients=[1.0,2.0,3.0]",
     {"float32[1,2] 1 2"},
     {"!3 coefficients and 0 intercepts for 2 features"}},
    {"ai.onnx.ml.LinearRegressor",
     21,
     "coefficients=[1.0] post_transform='PROBIT'",
     {"float32[1,1] 1"},
     {"!post_transform 'PROBIT'"}},
    {"ai.onnx.ml.SVMRegressor",
     21,
     "coefficients=[1.0] support_vectors=[1.0] n_supports=1 rho=[0.0] kernel_type='X'",
     {"float32[1,1] 1"},
     {"!kernel_type 'X'"}},
    {"ai.onnx.ml.SVMClassifier",
     21,
     "classlabels_ints=[7,9] coefficients=[1.0,-1.0] vectors_per_class=[1,1] rho=[0.25]"
     " support_vectors=[1.0,0.0,0.0,1.0] kernel_type='LINEAR'",
     {"float32[2,2] 2 0.5 0.25 1.25"},
     {"int64[2] 7 9", "float32[2,2] -1.75 1.75 0.75 -0.75"}},
    {"ai.onnx.ml.SVMClassifier",
     21,
     "classlabels_ints=[4,5,6] coefficients=[1.0,-1.0,-2.0,0.5,2.0,-0.5] vectors_per_class=[1,1,1]"
     " rho=[0.1,0.2,0.3] support_vectors=[1.0,0.0,0.0,1.0,1.0,1.0] kernel_type='LINEAR'",
     {"float32[2,2] 2 0.5 0.25 1.25"},
     {"int64[2] 4 5", "float32[2,3] 1.6 -3.8 0.05 -0.9 -2.675 2.05"}},
    {"ai.onnx.ml.SVMClassifier",
     21,
     "classlabels_ints=[7,9] coefficients=[1.0,-1.0] vectors_per_class=[1,1] rho=[0.25]"
     " support_vectors=[1.0,0.0,0.0,1.0] prob_a=[1.0] prob_b=[1.0]",
     {"float32[1,2] 2 0.5"},
     {"!its probabilities are not computed: export it without them", ""}},
    {"ai.onnx.ml.SVMClassifier",
     21,
     "classlabels_ints=[7,9] coefficients=[1.0,-1.0] vectors_per_class=[1,1] rho=[0.25,1.0]"
     " support_vectors=[1.0,0.0,0.0,1.0] post_transform='SOFTMAX'",
     {"float32[1,2] 2 0.5"},
     {"!2 values of rho and post_transform 'SOFTMAX', expected 1 and NONE", ""}},
    {"ai.onnx.ml.SVMClassifier",
     21,
     "classlabels_ints=[7,9] coefficients=[1.0,1.0] vectors_per_class=[1,1] rho=[0.25]"
     " support_vectors=[1.0,0.0,0.0,1.0]",
     {"float32[1,2] 2 0.5"},
     {"!no coefficient of two labels is below 0", ""}},
    {"ai.onnx.ml.SVMClassifier",
     21,
     "classlabels_ints=[7,9] coefficients=[1.0,-1.0] vectors_per_class=[9,-8] rho=[0.25]"
     " support_vectors=[1.0,0.0]",
     {"float32[1,2] 2 0.5"},
     {"!2 values of", ""}},
    {"ai.onnx.ml.StringSplitter", 21, "", {"float32[1] 1"}, {"!operator is not known"}},
};

static const struct onnx_case scalers[] = {
    {"ai.onnx.ml.Scaler",
     21,
     "offset=[1.0,2.0] scale=[0.5,4.0]",
     {"float32[3,2] 2 0.5 0.75 1.75 0.25 1.25"},
     {"float32[3,2] 0.5 -6 -0.125 -1 -0.375 -3"}},
    {"ai.onnx.ml.Scaler",
     21,
     "offset=[1.0] scale=[0.5]",
     {"int64[3] 1 2 3"},
     {"float32[3] 0 0.5 1"}},
    {"ai.onnx.ml.Normalizer",
     21,
     "norm='MAX'",
     {"float32[2,3] 1 -2 4 0 0 0"},
     {"float32[2,3] 0.25 -0.5 1 0 0 0"}},
    {"ai.onnx.ml.Normalizer",
     21,
     "norm='L1'",
     {"float32[2,3] 1 -2 4 0 0 0"},
     {"float32[2,3] 0.14285715 -0.2857143 0.5714286 0 0 0"}},
    {"ai.onnx.ml.Normalizer",
     21,
     "norm='L2'",
     {"float32[2,3] 1 -2 4 0 0 0"},
     {"float32[2,3] 0.21821789 -0.43643579 0.87287158 0 0 0"}},
    {"ai.onnx.ml.Binarizer", 21, "threshold=0.5", {"float32[3] 0.5 0.75 -1"}, {"float32[3] 0 1 0"}},
    {"ai.onnx.ml.Imputer",
     21,
     "imputed_value_floats=[5.0,6.0] replaced_value_float=1.0",
     {"float32[2,2] 1 1 2 3"},
     {"float32[2,2] 5 6 2 3"}},
    {"ai.onnx.ml.Imputer",
     21,
     "imputed_value_int64s=[5] replaced_value_int64=-1",
     {"int64[1,3] -1 2 3"},
     {"int64[1,3] 5 2 3"}},
    {"ai.onnx.ml.Scaler",
     21,
     "offset=[1.0,2.0,3.0] scale=[1.0]",
     {"float32[1,2] 1 2"},
     {"!offset has 3 values for 2 features"}},
    {"ai.onnx.ml.Normalizer", 21, "norm='L3'", {"float32[1,2] 1 2"}, {"!norm 'L3'"}},
    {"ai.onnx.ml.Imputer", 21, "", {"float32[1,2] 1 2"}, {"!imputed_value_floats has 0 values"}},
};

static const struct onnx_case encoders[] = {
    {"ai.onnx.ml.LabelEncoder",
     21,
     "keys_int64s=[3,1,2] values_floats=[0.5,1.5,2.5] default_float=9.0",
     {"int64[4] 1 2 4 3"},
     {"float32[4] 1.5 2.5 9 0.5"}},
    {"ai.onnx.ml.LabelEncoder",
     21,
     "keys_floats=[3.0,1.0] values_int64s=[7,8]",
     {"float32[2,2] 1 3 2 nan"},
     {"int64[2,2] 8 7 -1 -1"}},
    {"ai.onnx.ml.LabelEncoder",
     21,
     "keys_tensor={int64[2] 1 2} values_tensor={int16[2] 5 6}"
     " default_tensor={int16[1] -3}",
     {"int64[2] 2 9"},
     {"int16[2] 6 -3"}},
    {"ai.onnx.ml.OneHotEncoder",
     21,
     "cats_int64s=[4,2]",
     {"int64[3] 2 4 7"},
     {"float32[3,2] 0 1 1 0 0 0"}},
    {"ai.onnx.ml.OneHotEncoder",
     21,
     "cats_int64s=[4,2]",
     {"float32[1,2] 2.5 4"},
     {"float32[1,2,2] 0 1 1 0"}},
    {"ai.onnx.ml.ArrayFeatureExtractor",
     21,
     "",
     {"float32[3,2] 2 0.5 0.75 1.75 0.25 1.25", "int64[3] 1 0 1"},
     {"float32[3,3] 0.5 2 0.5 1.75 0.75 1.75 1.25 0.25 1.25"}},
    {"ai.onnx.ml.ArrayFeatureExtractor",
     21,
     "",
     {"float32[3] -1 1.5 1.75", "int64[1,1] 2"},
     {"float32[1,1] 1.75"}},
    {"ai.onnx.ml.FeatureVectorizer",
     21,
     "inputdimensions=[1,2]",
     {"int64[2,1] 1 2", "int64[2,2] 1 2 3 4"},
     {"float32[2,3] 1 1 2 2 3 4"}},
    {"ai.onnx.ml.LabelEncoder",
     21,
     "keys_strings=['a'] values_int64s=[1]",
     {"int64[1] 1"},
     {"!keys_strings are texts"}},
    {"ai.onnx.ml.LabelEncoder",
     21,
     "keys_int64s=[1] values_int64s=[1,2]",
     {"int64[1] 1"},
     {"!1 keys and 2 values"}},
    {"ai.onnx.ml.OneHotEncoder",
     21,
     "cats_strings=['a']",
     {"int64[1] 1"},
     {"!categories are texts"}},
    /* maps have no type: the matrix goes through */
    {"ai.onnx.ml.ZipMap",
     21,
     "classlabels_int64s=[0,1]",
     {"float32[1,2] 0.25 0.75"},
     {"float32[1,2] 0.25 0.75"}},
};

static const struct onnx_case trees[] = {
    {"ai.onnx.ml.TreeEnsembleRegressor",
     21,
     "nodes_treeids=[0,0,0,0,0,1,1,1] nodes_nodeids=[0,1,2,3,4,0,1,2]"
     " nodes_featureids=[0,1,0,0,0,1,0,0] nodes_truenodeids=[1,3,0,0,0,1,0,0]"
     " nodes_falsenodeids=[2,4,0,0,0,2,0,0]"
     " nodes_values=[0.5,-0.25,0.0,0.0,0.0,1.0,0.0,0.0]"
     " nodes_modes=['BRANCH_LEQ','BRANCH_LEQ','LEAF','LEAF','LEAF','BRANCH_LEQ',"
     "'LEAF','LEAF'] target_treeids=[0,0,0,1,1] target_nodeids=[2,3,4,1,2]"
     " target_ids=[0,0,0,0,0] target_weights=[1.0,2.0,3.0,4.0,5.0] n_targets=1"
     " base_values=[0.5]",
     {"float32[4,2] 0.25 -0.25 0.5 1.5 0.75 1 -1 2"},
     {"float32[4,1] 6.5 8.5 5.5 8.5"}},
    {"ai.onnx.ml.TreeEnsembleRegressor",
     21,
     "nodes_treeids=[0,0,0,0,0,1,1,1] nodes_nodeids=[0,1,2,3,4,0,1,2]"
     " nodes_featureids=[0,1,0,0,0,1,0,0] nodes_truenodeids=[1,3,0,0,0,1,0,0]"
     " nodes_falsenodeids=[2,4,0,0,0,2,0,0]"
     " nodes_values=[0.5,-0.25,0.0,0.0,0.0,1.0,0.0,0.0]"
     " nodes_modes=['BRANCH_GT','BRANCH_EQ','LEAF','LEAF','LEAF','BRANCH_NEQ','LEAF',"
     "'LEAF'] nodes_missing_value_tracks_true=[1,0,0,0,0,0,0,0]"
     " target_treeids=[0,0,0,1,1] target_nodeids=[2,3,4,1,2] target_ids=[0,0,0,0,0]"
     " target_weights=[1.0,2.0,3.0,4.0,5.0] n_targets=1",
     {"float32[4,2] nan -0.25 2 -0.25 0.25 nan 1 1"},
     {"float32[4,1] 6 6 5 8"}},
    {"ai.onnx.ml.TreeEnsembleRegressor",
     21,
     "nodes_treeids=[0,0,0,0,0,1,1,1] nodes_nodeids=[0,1,2,3,4,0,1,2]"
     " nodes_featureids=[0,1,0,0,0,1,0,0] nodes_truenodeids=[1,3,0,0,0,1,0,0]"
     " nodes_falsenodeids=[2,4,0,0,0,2,0,0]"
     " nodes_values=[0.5,-0.25,0.0,0.0,0.0,1.0,0.0,0.0]"
     " nodes_modes=['BRANCH_LEQ','BRANCH_LEQ','LEAF','LEAF','LEAF','BRANCH_LEQ',"
     "'LEAF','LEAF'] target_treeids=[0,0,0,1,1] target_nodeids=[2,3,4,1,2]"
     " target_ids=[0,0,0,0,0] target_weights=[1.0,2.0,-3.0,4.0,5.0] n_targets=1"
     " aggregate_function='AVERAGE'",
     {"float32[4,2] 0.25 -0.25 0.5 1.5 0.75 1 -1 2"},
     {"float32[4,1] 3 1 2.5 1"}},
    {"ai.onnx.ml.TreeEnsembleRegressor",
     21,
     "nodes_treeids=[0,0,0,0,0,1,1,1] nodes_nodeids=[0,1,2,3,4,0,1,2]"
     " nodes_featureids=[0,1,0,0,0,1,0,0] nodes_truenodeids=[1,3,0,0,0,1,0,0]"
     " nodes_falsenodeids=[2,4,0,0,0,2,0,0]"
     " nodes_values=[0.5,-0.25,0.0,0.0,0.0,1.0,0.0,0.0]"
     " nodes_modes=['BRANCH_LEQ','BRANCH_LEQ','LEAF','LEAF','LEAF','BRANCH_LEQ',"
     "'LEAF','LEAF'] target_treeids=[0,0,0,1,1] target_nodeids=[2,3,4,1,2]"
     " target_ids=[0,0,0,0,0] target_weights=[1.0,2.0,-3.0,4.0,5.0] n_targets=1"
     " aggregate_function='MIN'",
     {"float32[4,2] 0.25 -0.25 0.5 1.5 0.75 1 -1 2"},
     {"float32[4,1] 2 -3 1 -3"}},
    {"ai.onnx.ml.TreeEnsembleRegressor",
     21,
     "nodes_treeids=[0,0,0,0,0,1,1,1] nodes_nodeids=[0,1,2,3,4,0,1,2]"
     " nodes_featureids=[0,1,0,0,0,1,0,0] nodes_truenodeids=[1,3,0,0,0,1,0,0]"
     " nodes_falsenodeids=[2,4,0,0,0,2,0,0]"
     " nodes_values=[0.5,-0.25,0.0,0.0,0.0,1.0,0.0,0.0]"
     " nodes_modes=['BRANCH_LEQ','BRANCH_LEQ','LEAF','LEAF','LEAF','BRANCH_LEQ',"
     "'LEAF','LEAF'] target_treeids=[0,0,0,1,1] target_nodeids=[2,3,4,1,2]"
     " target_ids=[0,0,0,0,0] target_weights=[1.0,2.0,-3.0,4.0,5.0] n_targets=1"
     " aggregate_function='MAX'",
     {"float32[4,2] 0.25 -0.25 0.5 1.5 0.75 1 -1 2"},
     {"float32[4,1] 4 5 4 5"}},
    {"ai.onnx.ml.TreeEnsembleRegressor",
     21,
     "nodes_treeids=[0,0,0,0,0,1,1,1] nodes_nodeids=[0,1,2,3,4,0,1,2]"
     " nodes_featureids=[0,1,0,0,0,1,0,0] nodes_truenodeids=[1,3,0,0,0,1,0,0]"
     " nodes_falsenodeids=[2,4,0,0,0,2,0,0]"
     " nodes_values=[0.5,-0.25,0.0,0.0,0.0,1.0,0.0,0.0]"
     " nodes_modes=['BRANCH_LEQ','BRANCH_LEQ','LEAF','LEAF','LEAF','BRANCH_LEQ',"
     "'LEAF','LEAF'] target_treeids=[0,0,0,1,1] target_nodeids=[2,3,4,1,2]"
     " target_ids=[0,1,0,1,0] target_weights=[1.0,2.0,3.0,4.0,5.0] n_targets=2",
     {"float32[4,2] 0.25 -0.25 0.5 1.5 0.75 1 -1 2"},
     {"float32[4,2] 0 6 8 0 1 4 8 0"}},
    {"ai.onnx.ml.TreeEnsembleClassifier",
     21,
     "nodes_treeids=[0,0,0,0,0,1,1,1] nodes_nodeids=[0,1,2,3,4,0,1,2]"
     " nodes_featureids=[0,1,0,0,0,1,0,0] nodes_truenodeids=[1,3,0,0,0,1,0,0]"
     " nodes_falsenodeids=[2,4,0,0,0,2,0,0]"
     " nodes_values=[0.5,-0.25,0.0,0.0,0.0,1.0,0.0,0.0]"
     " nodes_modes=['BRANCH_LEQ','BRANCH_LEQ','LEAF','LEAF','LEAF','BRANCH_LEQ',"
     "'LEAF','LEAF'] class_treeids=[0,0,0,1,1] class_nodeids=[2,3,4,1,2]"
     " class_ids=[0,1,2,1,0] class_weights=[1.0,2.0,3.0,4.0,5.0]"
     " classlabels_int64s=[5,6,7] post_transform='SOFTMAX'",
     {"float32[4,2] 0.25 -0.25 0.5 1.5 0.75 1 -1 2"},
     {"int64[4] 6 5 6 5",
      "float32[4,3] 0.0024665247 0.995067 0.0024665247 0.87560058 0.0058997502"
      " 0.11849965 0.04661262 0.93623954 0.017147826 0.87560058 0.0058997502 0.11849965"}},
    {"ai.onnx.ml.TreeEnsembleClassifier",
     21,
     "nodes_treeids=[0,0,0,0,0,1,1,1] nodes_nodeids=[0,1,2,3,4,0,1,2]"
     " nodes_featureids=[0,1,0,0,0,1,0,0] nodes_truenodeids=[1,3,0,0,0,1,0,0]"
     " nodes_falsenodeids=[2,4,0,0,0,2,0,0]"
     " nodes_values=[0.5,-0.25,0.0,0.0,0.0,1.0,0.0,0.0]"
     " nodes_modes=['BRANCH_LEQ','BRANCH_LEQ','LEAF','LEAF','LEAF','BRANCH_LEQ',"
     "'LEAF','LEAF'] class_treeids=[0,0,0,1,1] class_nodeids=[2,3,4,1,2]"
     " class_ids=[0,0,0,0,0] class_weights=[0.25,0.375,0.125,0.5,0.0]"
     " classlabels_int64s=[0,1] post_transform='NONE'",
     {"float32[4,2] 0.25 -0.25 0.5 1.5 0.75 1 -1 2"},
     {"int64[4] 1 0 1 0", "float32[4,2] 0.125 0.875 0.875 0.125 0.25 0.75 0.875 0.125"}},
    {"ai.onnx.ml.TreeEnsembleClassifier",
     21,
     "nodes_treeids=[0,0,0,0,0,1,1,1] nodes_nodeids=[0,1,2,3,4,0,1,2]"
     " nodes_featureids=[0,1,0,0,0,1,0,0] nodes_truenodeids=[1,3,0,0,0,1,0,0]"
     " nodes_falsenodeids=[2,4,0,0,0,2,0,0]"
     " nodes_values=[0.5,-0.25,0.0,0.0,0.0,1.0,0.0,0.0]"
     " nodes_modes=['BRANCH_LEQ','BRANCH_LEQ','LEAF','LEAF','LEAF','BRANCH_LEQ',"
     "'LEAF','LEAF'] class_treeids=[0,0,0,1,1] class_nodeids=[2,3,4,1,2]"
     " class_ids=[0,0,0,0,0] class_weights=[0.25,-0.375,0.125,0.5,-1.0]"
     " classlabels_int64s=[0,1] post_transform='NONE' base_values=[0.125]",
     {"float32[4,2] 0.25 -0.25 0.5 1.5 0.75 1 -1 2"},
     {"int64[4] 1 0 1 0", "float32[4,2] -0.25 0.25 0.75 -0.75 -0.875 0.875 0.75 -0.75"}},
    {"ai.onnx.ml.TreeEnsembleClassifier",
     21,
     "nodes_treeids=[0,0,0,0,0,1,1,1] nodes_nodeids=[0,1,2,3,4,0,1,2]"
     " nodes_featureids=[0,1,0,0,0,1,0,0] nodes_truenodeids=[1,3,0,0,0,1,0,0]"
     " nodes_falsenodeids=[2,4,0,0,0,2,0,0]"
     " nodes_values=[0.5,-0.25,0.0,0.0,0.0,1.0,0.0,0.0]"
     " nodes_modes=['BRANCH_LEQ','BRANCH_LEQ','LEAF','LEAF','LEAF','BRANCH_LEQ',"
     "'LEAF','LEAF'] class_treeids=[0,0,0,1,1] class_nodeids=[2,3,4,1,2]"
     " class_ids=[0,0,0,0,0] class_weights=[0.25,0.375,0.125,0.5,0.0]"
     " classlabels_int64s=[0,1] post_transform='LOGISTIC'",
     {"float32[4,2] 0.25 -0.25 0.5 1.5 0.75 1 -1 2"},
     {"int64[4] 1 0 1 0",
      "float32[4,2] 0.29421496 0.70578504 0.46879059 0.53120941 0.32082129 0.67917871"
      " 0.46879059 0.53120941"}},
    {"ai.onnx.ml.TreeEnsembleClassifier",
     21,
     "nodes_treeids=[0,0,0,0,0,1,1,1] nodes_nodeids=[0,1,2,3,4,0,1,2]"
     " nodes_featureids=[0,1,0,0,0,1,0,0] nodes_truenodeids=[1,3,0,0,0,1,0,0]"
     " nodes_falsenodeids=[2,4,0,0,0,2,0,0]"
     " nodes_values=[0.5,-0.25,0.0,0.0,0.0,1.0,0.0,0.0]"
     " nodes_modes=['BRANCH_LEQ','BRANCH_LEQ','LEAF','LEAF','LEAF','BRANCH_LEQ',"
     "'LEAF','LEAF'] class_treeids=[0,0,0,1,1] class_nodeids=[2,3,4,1,2]"
     " class_ids=[0,0,0,0,0] class_weights=[0.25,-0.375,0.125,0.5,-1.0]"
     " classlabels_int64s=[0,1] post_transform='LOGISTIC' base_values=[0.125]",
     {"float32[4,2] 0.25 -0.25 0.5 1.5 0.75 1 -1 2"},
     {"int64[4] 1 0 1 0",
      "float32[4,2] 0.43782347 0.56217653 0.67917871 0.32082129 0.29421496 0.70578504"
      " 0.67917871 0.32082129"}},
    {"ai.onnx.ml.TreeEnsembleClassifier",
     21,
     "nodes_treeids=[0,0,0,0,0,1,1,1] nodes_nodeids=[0,1,2,3,4,0,1,2]"
     " nodes_featureids=[0,1,0,0,0,1,0,0] nodes_truenodeids=[1,3,0,0,0,1,0,0]"
     " nodes_falsenodeids=[2,4,0,0,0,2,0,0]"
     " nodes_values=[0.5,-0.25,0.0,0.0,0.0,1.0,0.0,0.0]"
     " nodes_modes=['BRANCH_LEQ','BRANCH_LEQ','LEAF','LEAF','LEAF','BRANCH_LEQ',"
     "'LEAF','LEAF'] class_treeids=[0,0,0,1,1] class_nodeids=[2,3,4,1,2]"
     " class_ids=[0,0,0,0,0] class_weights=[0.25,0.375,0.125,0.5,0.0]"
     " classlabels_int64s=[0,1] post_transform='SOFTMAX'",
     {"float32[4,2] 0.25 -0.25 0.5 1.5 0.75 1 -1 2"},
     {"int64[4] 1 0 1 0", "float32[4,2] 0.125 0.875 0.875 0.125 0.25 0.75 0.875 0.125"}},
    {"ai.onnx.ml.TreeEnsembleClassifier",
     21,
     "nodes_treeids=[0,0,0,0,0,1,1,1] nodes_nodeids=[0,1,2,3,4,0,1,2]"
     " nodes_featureids=[0,1,0,0,0,1,0,0] nodes_truenodeids=[1,3,0,0,0,1,0,0]"
     " nodes_falsenodeids=[2,4,0,0,0,2,0,0]"
     " nodes_values=[0.5,-0.25,0.0,0.0,0.0,1.0,0.0,0.0]"
     " nodes_modes=['BRANCH_LEQ','BRANCH_LEQ','LEAF','LEAF','LEAF','BRANCH_LEQ',"
     "'LEAF','LEAF'] class_treeids=[0,0,0,1,1] class_nodeids=[2,3,4,1,2]"
     " class_ids=[0,0,0,0,0] class_weights=[0.25,-0.375,0.125,0.5,-1.0]"
     " classlabels_int64s=[0,1] post_transform='SOFTMAX' base_values=[0.125]",
     {"float32[4,2] 0.25 -0.25 0.5 1.5 0.75 1 -1 2"},
     {"int64[4] 1 0 1 0", "float32[4,2] -0.25 0.25 0.75 -0.75 -0.875 0.875 0.75 -0.75"}},
    {"ai.onnx.ml.TreeEnsemble",
     21,
     "n_targets=2 tree_roots=[0,2] nodes_featureids=[0,1,1] nodes_modes={uint8[3] 0 3"
     " 6} nodes_splits={float32[3] 0.5 -0.25 0} nodes_truenodeids=[1,0,3]"
     " nodes_trueleafs=[0,1,1] nodes_falsenodeids=[2,1,0] nodes_falseleafs=[1,1,1]"
     " leaf_targetids=[0,1,0,1] leaf_weights={float32[4] 1 2 3 4}"
     " membership_values={float32[3] 1 1.5 nan}",
     {"float32[4,2] 0.25 -0.25 0.5 1.5 0.75 1 -1 2"},
     {"float32[4,2] 1 2 1 4 3 4 2 0"}},
    {"ai.onnx.ml.TreeEnsemble",
     21,
     "n_targets=2 tree_roots=[0,2] nodes_featureids=[0,1,1] nodes_modes={uint8[3] 0 3"
     " 6} nodes_splits={float32[3] 0.5 -0.25 0} nodes_truenodeids=[1,0,3]"
     " nodes_trueleafs=[0,1,1] nodes_falsenodeids=[2,1,0] nodes_falseleafs=[1,1,1]"
     " leaf_targetids=[0,1,0,1] leaf_weights={float32[4] 1 2 3 4}"
     " membership_values={float32[3] 1 1.5 nan} aggregate_function=0",
     {"float32[4,2] 0.25 -0.25 0.5 1.5 0.75 1 -1 2"},
     {"float32[4,2] 0.5 1 0.5 2 1.5 2 1 0"}},
    {"ai.onnx.ml.TreeEnsembleRegressor",
     21,
     "nodes_treeids=[0,0,0] nodes_nodeids=[0,1,2] nodes_featureids=[0,0,0] "
     "nodes_truenodeids=[1,0,0] nodes_falsenodeids=[2,0,0] nodes_values=[0.5,0.0,0.0] "
     "nodes_modes=['BRANCH_X','LEAF','LEAF'] target_treeids=[0,0] target_nodeids=[1,2] "
     "target_ids=[0,0] target_weights=[1.0,2.0]",
     {"float32[1,1] 1"},
     {"!mode 'BRANCH_X'"}},
    {"ai.onnx.ml.TreeEnsembleRegressor",
     21,
     "nodes_treeids=[0,0,0] nodes_nodeids=[0,1,2] nodes_featureids=[0,0,0] "
     "nodes_truenodeids=[0,0,0] nodes_falsenodeids=[2,0,0] nodes_values=[0.5,0.0,0.0] "
     "nodes_modes=['BRANCH_LEQ','LEAF','LEAF'] target_treeids=[0,0] target_nodeids=[1,2] "
     "target_ids=[0,0] target_weights=[1.0,2.0]",
     {"float32[1,1] 1"},
     {"!in a circle"}},
    {"ai.onnx.ml.TreeEnsembleRegressor",
     21,
     "nodes_treeids=[0,0,0] nodes_nodeids=[0,1,2] nodes_featureids=[0,0,0] "
     "nodes_truenodeids=[7,0,0] nodes_falsenodeids=[2,0,0] nodes_values=[0.5,0.0,0.0] "
     "nodes_modes=['BRANCH_LEQ','LEAF','LEAF'] target_treeids=[0,0] target_nodeids=[1,2] "
     "target_ids=[0,0] target_weights=[1.0,2.0]",
     {"float32[1,1] 1"},
     {"!a branch that is not there"}},
    {"ai.onnx.ml.TreeEnsembleRegressor",
     21,
     "nodes_treeids=[0,0,0] nodes_nodeids=[0,1,2] nodes_featureids=[4,0,0] "
     "nodes_truenodeids=[1,0,0] nodes_falsenodeids=[2,0,0] nodes_values=[0.5,0.0,0.0] "
     "nodes_modes=['BRANCH_LEQ','LEAF','LEAF'] target_treeids=[0,0] target_nodeids=[1,2] "
     "target_ids=[0,0] target_weights=[1.0,2.0]",
     {"float32[1,1] 1"},
     {"!feature 4"}},
    {"ai.onnx.ml.TreeEnsembleRegressor",
     21,
     "nodes_treeids=[0,0,0] nodes_nodeids=[0,1,2] nodes_featureids=[0,0,0] "
     "nodes_truenodeids=[1,0,0] nodes_falsenodeids=[2,0,0] nodes_values=[0.5,0.0,0.0] "
     "nodes_modes=['BRANCH_LEQ','LEAF','LEAF'] target_treeids=[0,0] target_nodeids=[0,2] "
     "target_ids=[0,0] target_weights=[1.0,2.0]",
     {"float32[1,1] 1"},
     {"!a node that is no leaf"}},
    {"ai.onnx.ml.TreeEnsembleRegressor",
     21,
     "nodes_treeids=[0,0,0] nodes_nodeids=[0,1,2] nodes_featureids=[0,0,0] "
     "nodes_truenodeids=[1,0,0] nodes_falsenodeids=[2,0,0] nodes_values=[0.5,0.0,0.0] "
     "nodes_modes=['BRANCH_LEQ','LEAF','LEAF'] target_treeids=[0,0] target_nodeids=[1,2] "
     "target_ids=[0,3] target_weights=[1.0,2.0]",
     {"float32[1,1] 1"},
     {"!target 3 of 1"}},
};

static void linear_models_have_their_values(void)
{
    check_onnx_cases(linear);
}

static void scalers_have_their_values(void)
{
    check_onnx_cases(scalers);
}

static void encoders_have_their_values(void)
{
    check_onnx_cases(encoders);
}

static void trees_have_their_values(void)
{
    check_onnx_cases(trees);
}

static CU_TestInfo tests_onnx_ml[] = {
    {"linear_models_have_their_values", linear_models_have_their_values},
    {"scalers_have_their_values", scalers_have_their_values},
    {"encoders_have_their_values", encoders_have_their_values},
    {"trees_have_their_values", trees_have_their_values},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_onnx_ml[] = {
    {"onnx_ml", NULL, NULL, NULL, NULL, tests_onnx_ml},
    CU_SUITE_INFO_NULL,
};

// NumPy arrays for the predictions of trees.
#pragma once
#include "arrays.hpp"
#include "tree_engine.hpp"

namespace onlinegp {

// Arrays for the predictions of n rows
struct PredictedRows {
    PredictedRows(const Node& root, size_t n, bool with_sizes)
        : shape{n, size_t(root.p), size_t(root.kinds.count())},
          weights(fresh<double>(shape)),
          means(fresh<double>(shape)),
          scales(fresh<double>(shape)),
          stretch(fresh<double>({n, size_t(root.p)})),
          sizes(fresh<int64_t>({with_sizes ? n : 0})) {}
    Output output() {
        return {weights.data(), means.data(), scales.data(), stretch.data(), sizes.size() ? sizes.data() : nullptr};
    }
    const std::vector<size_t> shape;
    Doubles weights, means, scales, stretch;
    Integers sizes;
};

}  // namespace onlinegp

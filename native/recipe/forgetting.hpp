// Forgetting rules: the twin of onlinegp.recipes.forgetting.
#pragma once
#include "recipe/prediction.hpp"

namespace onlinegp::ONLINEGP_ISA {

constexpr double SMALLEST_SCALE = 1e-100, LARGEST_INFLATION = 1e4;

template <class T> void shrink(State<T>& state, Prediction<T>& prediction, double factor) {
    for (int o = 0; o < state.p; o++) {
        scale(T(factor), state.weights(o), state.size);
        prediction.mean[o] *= factor;
    }
}

// Multiply `scale` into S before it becomes too small; nothing may be pending
template <class T> void settle_scale(State<T>& state) {
    if (state.scale >= SMALLEST_SCALE) return;
    state.S.shrink(T(state.scale), T(1.0 - state.scale), int(state.size));
    state.scale = 1.0;
}

// Sigma <- lambda Sigma + (1 - lambda) K:  S <- lambda S + (1 - lambda) I, b <- sqrt(lambda) b
template <class T> void back_to_prior(const Recipe& recipe, State<T>& state, Prediction<T>& prediction) {
    const double factor = recipe.forgetting.factor;
    shrink(state, prediction, std::sqrt(factor));
    if (!state.S.s) return;
    state.scale *= factor;
    settle_scale(state);
    const double v = prediction.kxx - factor * (prediction.kxx - prediction.v);
    mix(T(factor), prediction.h.data(), T(1.0 - factor), prediction.t.data(), state.size);
    prediction.th = factor * prediction.th + (1.0 - factor) * prediction.t2;
    prediction.s += v - prediction.v;
    prediction.v = v;
}

// Sigma <- Sigma / lambda
template <class T> void inject_uncertainty(const Recipe& recipe, State<T>& state, Prediction<T>& prediction) {
    const double inverse = 1.0 / recipe.forgetting.factor;
    for (int i = 0; i < state.size; i++)
        if (inverse * double(state.S.at(i, i)) > LARGEST_INFLATION) return;
    state.S.shrink(T(inverse), T((1.0 - state.scale) / state.scale * (inverse - 1.0)), int(state.size));
    scale(T(inverse), prediction.h.data(), state.size);
    prediction.th *= inverse;
    const double v = prediction.gamma2 + inverse * (prediction.v - prediction.gamma2);
    prediction.s += v - prediction.v;
    prediction.v = v;
}

template <class T> void forget(const Recipe& recipe, State<T>& state, Prediction<T>& prediction) {
    switch (recipe.forgetting) {
        case Forgetting::Keep: return;
        case Forgetting::Leak: return shrink(state, prediction, 1.0 - recipe.forgetting.rate);
        case Forgetting::BackToPrior: return back_to_prior(recipe, state, prediction);
        case Forgetting::UncertaintyInjection: return inject_uncertainty(recipe, state, prediction);
    }
}

}  // namespace onlinegp::ONLINEGP_ISA

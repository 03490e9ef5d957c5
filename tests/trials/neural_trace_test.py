"""What a detailed trace of a neural ranker says follows from the trace, the data files and the design's formulas alone.

Everything is computed again in float64 with numpy: normalised features, scores, widths, certain orders, the list, the
pairs, the step's size and where the training's steps lead. Gradients are written out in full, one row of p numbers a
document, and A is inverted once a round through all pairs so far."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
except ModuleNotFoundError:
    # The distribution's package serves the distribution's interpreter, which need not be the first in PATH.
    SYSTEM_PYTHON = "/usr/bin/python3"
    if os.path.exists(SYSTEM_PYTHON) and os.environ.get("OLRANK_SECOND_PYTHON") is None:
        os.environ["OLRANK_SECOND_PYTHON"] = "1"
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.argv])
    print("skipped: numpy is missing (Debian package python3-numpy)")
    sys.exit(77)

PROGRAM = os.environ["OLRANK_PROGRAM"]
ROUNDS = 60
# The program scores in float32, by sums of up to 100 numbers in a few partial sums: 6e-8 of the absolute terms for each
# of some 15 additions in a row, where the terms of inner sums count as they reach the score.
SCORE_ROUNDING = 1e-6
# Differences of scores up to this share of the output layer's absolute terms are no order: docs/MATH.md, "Network".
NO_ORDER = 1e-6
# Widths come from float32 factors; their cancellation in M is in double.
WIDTH_TOLERANCE = 1e-3
# A step's gradient is off by 1e-6 of its terms, which cancel in the sum over pairs; 20 steps add that up.
THETA_TOLERANCE = 1e-4
# What a unit sums up may be off by in float32, relative to its absolute terms.
KINK = 1e-6


def olrank(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    if "warning" in done.stderr.lower():
        raise AssertionError("the program warned: " + done.stderr)
    return done


def letor_queries(paths):
    """qid -> (features as in the files, grades); documents in file order."""
    rows = {}
    features = 0
    for path in paths:
        with open(path) as lines:
            for line in lines:
                words = line.split("#")[0].split()
                if not words:
                    continue
                values = {int(word.split(":")[0]): float(word.split(":")[1]) for word in words[2:]}
                features = max(features, *values)
                rows.setdefault(words[1].removeprefix("qid:"), []).append((int(words[0]), values))
    queries = {}
    for qid, docs in rows.items():
        matrix = np.zeros((len(docs), features))
        for doc, (_, values) in enumerate(docs):
            for number, value in values.items():
                matrix[doc, number - 1] = value
        queries[qid] = (np.float32(matrix).astype(float), np.array([grade for grade, _ in docs]))
    return queries


def query_minmax(values):
    low = values.min(axis=0)
    span = values.max(axis=0) - low
    return np.where(span > 0, (values - low) / np.where(span > 0, span, 1.0), 0.0)


def sigmoid(z):
    return 0.5 * (1.0 + np.tanh(0.5 * z))


class Network:
    """f(x) = s (W_L relu(... relu(W_1 x + b_1)) + b_L), theta flat: layer 1 row by row, its bias, then layer 2, ...
    ntk has s = sqrt(m) and no biases, standard has s = 1 and biases."""

    def __init__(self, inputs, settings):
        self.width = settings["width"]
        self.biases = settings["parameterisation"] == "standard"
        self.scale = 1.0 if self.biases else np.sqrt(self.width)
        # Of A = lambda I + sum g g^T / m and of m lambda / 2 |theta - theta_0|^2.
        self.scaling = {"width": self.width, "none": 1}[settings["scaling"]]
        self.shapes = [(self.width, inputs)] + [(self.width, self.width)] * (settings["depth"] - 2) + [(1, self.width)]
        self.parameters = sum(rows * (columns + self.biases) for rows, columns in self.shapes)

    def layers(self, theta):
        """(weight, bias) of each layer; biases that are not there are zeros."""
        found = []
        begin = 0
        for rows, columns in self.shapes:
            weight = theta[begin:begin + rows * columns].reshape(rows, columns)
            begin += rows * columns
            bias = theta[begin:begin + rows] if self.biases else np.zeros(rows)
            begin += rows * self.biases
            found.append((weight, bias))
        assert begin == len(theta)
        return found

    def forward(self, theta, x):
        """h_0 ... h_{L-1}, and the scores with the sums of their absolute terms."""
        layers = self.layers(theta)
        hidden = [x]
        for weight, bias in layers[:-1]:
            hidden.append(np.maximum(hidden[-1] @ weight.T + bias, 0.0))
        weight, bias = layers[-1]
        scores = self.scale * (hidden[-1] @ weight.T + bias)
        magnitudes = self.scale * (np.abs(hidden[-1]) @ np.abs(weight).T + np.abs(bias))
        return hidden, scores[:, 0], magnitudes[:, 0]

    def absolute(self, theta, x):
        """What the absolute terms of all layers sum up to at the output: what rounding is relative to."""
        reach = np.abs(x)
        for weight, bias in self.layers(theta):
            reach = reach @ np.abs(weight).T + np.abs(bias)
        return self.scale * reach[:, 0]

    def deltas(self, theta, hidden):
        """d f / d (W_l h_{l-1} + b_l) for each layer."""
        layers = self.layers(theta)
        delta = np.full((len(hidden[0]), 1), self.scale)
        found = [delta]
        for number in range(len(layers) - 1, 0, -1):
            delta = (delta @ layers[number][0]) * (hidden[number] > 0.0)
            found.insert(0, delta)
        return found

    def gradients(self, theta, x):
        """One row of p numbers a document."""
        hidden, _, _ = self.forward(theta, x)
        parts = []
        for delta, h in zip(self.deltas(theta, hidden), hidden):
            parts.append(np.einsum("vr,vc->vrc", delta, h).reshape(len(x), -1))
            if self.biases:
                parts.append(delta)
        return np.concatenate(parts, axis=1)

    def kinks(self, theta, x, weights_of):
        """How far the weighted gradient may be off for units within float32's rounding of their kink, where either
        derivative of ReLU is right: the norms of what each of them adds or leaves out."""
        hidden, scores, _ = self.forward(theta, x)
        weight = np.abs(weights_of(scores))[:, None]
        layers = self.layers(theta)
        delta = np.full((len(x), 1), self.scale)
        total = 0.0
        for number in range(len(layers) - 1, 0, -1):
            below, bias = layers[number - 1]
            through = delta @ layers[number][0]
            inputs = hidden[number - 1]
            before = inputs @ below.T + bias
            near = np.abs(before) <= KINK * (np.abs(inputs) @ np.abs(below).T + np.abs(bias))
            size = np.sqrt((inputs ** 2).sum(axis=1, keepdims=True) + 1.0)
            total += float((near * np.abs(through) * weight * size).sum())
            delta = through * (before > 0.0)
        return total

    def weighted_gradient(self, theta, x, weights_of):
        """Sum of weights_of(scores)[i] times the gradient of document i, without the rows."""
        hidden, scores, _ = self.forward(theta, x)
        weight = weights_of(scores)[:, None]
        parts = []
        for delta, h in zip(self.deltas(theta, hidden), hidden):
            parts.append(((delta * weight).T @ h).ravel())
            if self.biases:
                parts.append((delta * weight).sum(axis=0))
        return np.concatenate(parts)


class History:
    """Every pair so far as two rows of one matrix of documents."""

    def __init__(self):
        self.rows = {}
        self.features = []
        self.winners = []
        self.losers = []

    def row(self, qid, doc, x):
        if (qid, doc) not in self.rows:
            self.rows[qid, doc] = len(self.features)
            self.features.append(x)
        return self.rows[qid, doc]

    def add(self, qid, x, pairs):
        for winner, loser in pairs:
            self.winners.append(self.row(qid, winner, x[winner]))
            self.losers.append(self.row(qid, loser, x[loser]))

    def __len__(self):
        return len(self.winners)

    def slopes(self, scores):
        """d(summed cross-entropy)/d(score) of each document."""
        slope = sigmoid(scores[self.winners] - scores[self.losers]) - 1.0
        weights = np.zeros(len(scores))
        np.add.at(weights, self.winners, slope)
        np.add.at(weights, self.losers, -slope)
        return weights

    def gradient(self, network, theta):
        """Of the summed cross-entropy."""
        return network.weighted_gradient(theta, np.array(self.features), self.slopes)

    def kinks(self, network, theta):
        return network.kinks(theta, np.array(self.features), self.slopes)

    def curvature(self, network, theta):
        """lambda_max(sum of g g^T)/4, from the pairs' Gram matrix."""
        g = network.gradients(theta, np.array(self.features))
        g = g[self.winners] - g[self.losers]
        gram = g @ g.T if len(g) < g.shape[1] else g.T @ g
        return np.linalg.eigvalsh(gram)[-1] / 4.0


def examined(clicks):
    last = max((rank for rank, click in enumerate(clicks) if click), default=None)
    return 0 if last is None else min(last + 2, len(clicks))


def adjacent_pairs(shown, clicks):
    pairs = []
    for rank in range(0, examined(clicks) - 1, 2):
        if clicks[rank] != clicks[rank + 1]:
            pair = [shown[rank], shown[rank + 1]]
            pairs.append(pair if clicks[rank] else pair[::-1])
    return pairs


def ndcg(shown, grades):
    def dcg(list_of_grades):
        return sum((2.0 ** grade - 1.0) / np.log2(rank + 2.0) for rank, grade in enumerate(list_of_grades))

    ideal = dcg(sorted(grades, reverse=True)[:len(shown)])
    return dcg([grades[doc] for doc in shown]) / ideal if ideal > 0 else 0.0


def squared_widths(gradients, observed, settings, network):
    """w^2 of every pair of documents; `observed` are the pairs' gradients, each at the theta of its round."""
    lam, scale = settings["lambda"], 1.0 / network.scaling
    if settings["covariance"] == "diagonal":
        a = lam + scale * (observed ** 2).sum(axis=0)
        scaled = gradients * np.sqrt(scale / a)
        return ((scaled[:, None, :] - scaled[None, :, :]) ** 2).sum(axis=2)
    # Woodbury: A^-1 = (I - R^T (lam I + R R^T)^-1 R)/lam with the pairs' gradients times sqrt(s) as rows R.
    rows = observed * np.sqrt(scale)
    g = gradients * np.sqrt(scale)
    form = g @ g.T
    if len(rows):
        across = g @ rows.T
        form = form - across @ np.linalg.solve(lam * np.eye(len(rows)) + rows @ rows.T, across.T)
    form /= lam
    diagonal = np.diag(form)
    return diagonal[:, None] + diagonal[None, :] - 2.0 * form


class Traces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        olrank("data", "synth", "small?queries=40", "--out", cls.folder / "synth")

    def synthetic(self):
        return self.folder / "synth", letor_queries([self.folder / "synth" / "train.txt"])

    def trace(self, data, *arguments):
        """Configuration, and the rounds one by one."""
        out = self.folder / "run"
        path = self.folder / "trace.jsonl"
        olrank("run", "--quiet", "--force", "--data", data, "--fold", 1, "--rounds", ROUNDS, "--seeds", 1, "--clicks",
               "navigational", "--protocol-eval-every", ROUNDS, "--out", out, "--trace", path, "--trace-detail",
               *arguments)
        with open(path) as lines:
            config = json.loads(next(lines))["config"]
            rounds = [json.loads(line) for line in lines]
        self.assertEqual([one["round"] for one in rounds], list(range(1, ROUNDS + 1)))
        return config, rounds

    def ranker_of(self, config):
        ranker = config["ranker"]
        return ranker[0] if isinstance(ranker, list) else ranker

    def check_scores(self, traced, expected, rounding):
        scores = np.array(traced)
        self.assertEqual(scores.shape, expected.shape)
        off = np.abs(scores - expected)
        self.assertTrue(np.all(off <= rounding), f"{np.max(off / np.maximum(rounding, 1e-300))} of what is allowed")

    def check_list(self, one, certain, cutoff):
        """Each document that is certainly before a shown one is shown above it."""
        shown = one["shown"]
        self.assertEqual(len(shown), min(cutoff, one["docs"]))
        self.assertEqual(len(set(shown)), len(shown))
        for rank, doc in enumerate(shown):
            before = set(np.flatnonzero(certain[:, doc]))
            self.assertLessEqual(before, set(shown[:rank]), f"round {one['round']}")

    def check_blocks(self, one, certain, cutoff):
        """After the transitive closure, whatever no uncertain pair joins stays in the order of the scores."""
        closed = certain.copy()
        for between in range(len(closed)):
            closed |= np.outer(closed[:, between], closed[between])
        order = np.lexsort((np.arange(len(closed)), -np.array(one["scores"])))
        shown = one["shown"]
        self.assertEqual(len(shown), min(cutoff, one["docs"]))
        begin = blocks = 0
        for end in range(1, len(order) + 1):
            if np.all(closed[np.ix_(order[begin:end], order[end:])]):
                block = order[begin:end]
                self.assertEqual(len(set(shown[begin:end])), len(shown[begin:end]))
                self.assertLessEqual(set(shown[begin:end]), set(block), f"round {one['round']}")
                begin = end
                blocks += 1
        return blocks

    def check_matched(self, one):
        """As many pairs as the rarer kind of examined document, none of them twice."""
        seen = examined(one["clicks"])
        kinds = [[doc for doc, click in zip(one["shown"][:seen], one["clicks"]) if click == kind] for kind in (1, 0)]
        self.assertEqual(len(one["pairs"]), min(map(len, kinds)))
        for side in (0, 1):
            docs = [pair[side] for pair in one["pairs"]]
            self.assertEqual(len(set(docs)), len(docs))
            self.assertLessEqual(set(docs), set(kinds[side]))

    def check_feedback(self, one, grades):
        self.assertEqual(len(one["clicks"]), len(one["shown"]))
        self.assertEqual(one["pairs"], adjacent_pairs(one["shown"], one["clicks"]))
        self.assertAlmostEqual(one["ndcg"], ndcg(one["shown"], grades), places=12)

    def check_certain(self, certain, scores, widths, unsure, alpha, least):
        """Orders whose margin is not within `unsure` of the threshold, nor their scores' difference within `least`."""
        z = scores[:, None] - scores[None, :]
        margin = sigmoid(z) - alpha * np.sqrt(np.maximum(widths, 0.0)) - 0.5
        clear = (np.abs(margin) > unsure) & (np.abs(z) > least)
        np.fill_diagonal(clear, False)
        self.assertTrue(np.array_equal(certain[clear], margin[clear] > 0))
        return np.count_nonzero(clear & (margin > 0)), np.count_nonzero(clear & (margin <= 0))

    def look_at(self, one, settings, network, theta, x, observed):
        """Scores, widths and certain orders of a round; the gradients, and how many orders are clearly (un)certain."""
        _, scores, magnitude = network.forward(theta, x)
        rounding = SCORE_ROUNDING * network.absolute(theta, x)
        traced_scores = np.array(one["scores"])
        if one["round"] == 1 and not network.biases:
            self.assertTrue(np.all(np.abs(traced_scores) <= NO_ORDER * magnitude), "f(x; theta_0) = 0")
        self.check_scores(traced_scores, scores, rounding)
        gradients = network.gradients(theta, x)
        widths = squared_widths(gradients, observed, settings, network)
        traced_widths = np.array(one["width_sq"])
        # Documents of equal features have width 0, up to the cancellation of double.
        self.assertTrue(np.linalg.norm(traced_widths - widths) <= WIDTH_TOLERANCE * np.linalg.norm(widths) + 1e-12)
        large = widths > 1e-3 * widths.max()
        self.assertTrue(np.all(np.abs(traced_widths - widths)[large] <= WIDTH_TOLERANCE * widths[large]),
                        f"round {one['round']}")
        certain = np.array(one["certain"], dtype=bool)
        alpha = settings["alpha"]
        # The largest absolute sum is float32 there and float64 here: a hundredth is more than that makes.
        least = NO_ORDER * magnitude.max()
        differences = np.abs(traced_scores[:, None] - traced_scores[None, :])
        self.assertFalse(np.any(certain[differences < 0.99 * least]))
        self.check_certain(certain, traced_scores, traced_widths, 1e-6, alpha, 1.01 * least)
        least += 2.0 * rounding.max()
        unsure = 2.0 * WIDTH_TOLERANCE * alpha * np.sqrt(np.maximum(widths, 0.0)) + least + 1e-6
        sure, unsure_ones = self.check_certain(certain, scores, widths, unsure, alpha, least)
        return gradients, certain, sure, unsure_ones

    def follow(self, data, queries, covariance, width, *arguments):
        config, rounds = self.trace(data, "--ranker", "olranknet", "--protocol", "paper", "--covariance", covariance, "--width", width,
                                    *arguments)
        settings = self.settings = self.ranker_of(config)
        self.assertEqual((settings["covariance"], settings["width"]), (covariance, width))
        self.assertEqual(settings["pairs"], "adjacent")
        lam = settings["lambda"]
        inputs = next(iter(queries.values()))[0].shape[1]
        network = Network(inputs, settings)
        first = np.array(rounds[0]["theta"])
        self.assertEqual(len(first), network.parameters)
        history = History()
        observed = np.zeros((0, network.parameters))
        refreshed = 0  # n when the curvature was estimated last
        curvature = 0.0
        certain_orders = uncertain_orders = trained = 0
        moved = 0.0
        path = at_kinks = 0.0
        for number, one in enumerate(rounds):
            raw, grades = queries[one["qid"]]
            x = query_minmax(raw)
            self.assertEqual(one["docs"], len(x))
            theta = np.array(one["theta"])
            gradients, certain, sure, open_ones = self.look_at(one, settings, network, theta, x, observed)
            certain_orders += sure
            uncertain_orders += open_ones
            self.check_list(one, certain, config["protocol"]["cutoff"])
            self.check_feedback(one, grades)
            if not one["pairs"]:
                self.assertIsNone(one["step"])
                if number + 1 < ROUNDS:
                    self.assertEqual(one["theta"], rounds[number + 1]["theta"])
                continue
            history.add(one["qid"], x, one["pairs"])
            observed = np.concatenate([observed, [gradients[winner] - gradients[loser] for winner, loser in one["pairs"]]])
            if refreshed == 0 or 10 * len(history) >= 11 * refreshed:
                refreshed = len(history)
                curvature = history.curvature(network, theta)
            # A power iteration that stops at 1e-3 of growth comes from below, to some percent; a step that was
            # too long is halved.
            step = settings["learning_rate"] / (curvature + network.scaling * lam)
            whole = one["step"] if one["step"] > 0.7 * step else 2.0 * one["step"]
            self.assertTrue(0.999 * step <= whole <= 1.05 * step, f"round {number + 1}: {whole / step}")
            if number + 1 == ROUNDS:
                break
            trained += 1
            ahead = theta
            kinks = 0.0
            for _ in range(settings["steps"]):
                kinks += one["step"] * history.kinks(network, ahead)
                ahead = ahead - one["step"] * (history.gradient(network, ahead) + network.scaling * lam * (ahead - first))
            arrived = np.array(rounds[number + 1]["theta"])
            # And theta itself is float32 after every step: 3e-8 of it, 20 times at random.
            allowed = THETA_TOLERANCE * np.linalg.norm(ahead - theta) + 3e-7 * np.linalg.norm(theta) + kinks
            path += np.linalg.norm(ahead - theta)
            at_kinks += kinks
            self.assertTrue(np.linalg.norm(arrived - ahead) <= allowed,
                            f"round {number + 1}: {np.linalg.norm(arrived - ahead) / allowed} of what is allowed")
            moved = max(moved, np.linalg.norm(arrived - theta) / np.linalg.norm(theta))
        self.assertGreater(trained, 20)
        self.assertLess(at_kinks, 0.01 * path)
        self.assertGreater(moved, 1e-4)
        self.assertGreater(uncertain_orders, 100)
        return certain_orders

    def check_all(self, data, queries, *arguments):
        for width in (16, 100):
            for covariance in ("full", "diagonal"):
                with self.subTest(width=width, covariance=covariance):
                    self.assertGreater(self.follow(data, queries, covariance, width, *arguments), 50)

    def test_synthetic(self):
        self.check_all(*self.synthetic(), "--alpha", 0.1, "--lambda", 0.1)

    def test_large_lambda_and_three_layers(self):
        self.follow(*self.synthetic(), "full", 16, "--alpha", 0.01, "--lambda", 10)
        self.follow(*self.synthetic(), "diagonal", 16, "--alpha", 0.1, "--lambda", 0.1, "--depth", 3)

    def test_the_protocol_says_where_the_width_goes_whatever_the_parameterisation(self):
        """`paper` has 1/m in A and m before lambda, `reference` has neither; `scaling` says it by itself."""
        for arguments, known in ((("--parameterisation", "standard"), ("standard", "width")),
                                 (("--parameterisation", "standard", "--scaling", "none"), ("standard", "none")),
                                 (("--scaling", "none"), ("ntk", "none"))):
            for covariance in ("full", "diagonal"):
                with self.subTest(arguments=arguments, covariance=covariance):
                    self.follow(*self.synthetic(), covariance, 16, "--alpha", 0.01, "--lambda", 10, *arguments)
                    self.assertEqual((self.settings["parameterisation"], self.settings["scaling"]), known)
        config, _ = self.trace(self.synthetic()[0], "--ranker", "olranknet", "--protocol", "reference", "--parameterisation",
                               "ntk", "--width", 4)
        self.assertEqual(self.ranker_of(config)["scaling"], "none")

    def test_reference(self):
        """Standard networks, trained from theta_0 at each update (restart = "first") by Adam: one batch holds the whole history here."""
        for covariance in ("full", "diagonal"):
            with self.subTest(covariance=covariance):
                self.follow_reference(covariance)

    def follow_reference(self, covariance):
        data, queries = self.synthetic()
        config, rounds = self.trace(data, "--ranker", "olranknet", "--protocol", "reference", "--width", 16,
                                    "--covariance", covariance, "--alpha", 0.01, "--learning-rate", 0.01, "--restart", "first")
        settings = self.ranker_of(config)
        self.assertEqual((settings["parameterisation"], settings["pairs"], settings["list"], settings["refine"]),
                         ("standard", "matched", "blocks", True))
        network = Network(next(iter(queries.values()))[0].shape[1], settings)
        first = np.array(rounds[0]["theta"])
        self.assertEqual(len(first), network.parameters)
        history = History()
        observed = np.zeros((0, network.parameters))
        certain_orders = uncertain_orders = trained = 0
        most_blocks = 0
        for number, one in enumerate(rounds):
            x = query_minmax(queries[one["qid"]][0])
            theta = np.array(one["theta"])
            gradients, certain, sure, unsure = self.look_at(one, settings, network, theta, x, observed)
            certain_orders += sure
            uncertain_orders += unsure
            most_blocks = max(most_blocks, self.check_blocks(one, certain, config["protocol"]["cutoff"]))
            self.check_matched(one)
            self.assertIsNone(one["step"])
            if number + 1 == ROUNDS:
                break
            arrived = np.array(rounds[number + 1]["theta"])
            if not one["pairs"]:
                self.assertTrue(np.array_equal(theta, arrived))
                continue
            history.add(one["qid"], x, one["pairs"])
            observed = np.concatenate([observed, [gradients[winner] - gradients[loser] for winner, loser in one["pairs"]]])
            n = len(history)
            self.assertLessEqual(n, settings["batch"])
            trained += 1
            ahead, mean, square = first, 0.0, 0.0
            for update in range(1, settings["epochs"] + 1):
                slope = history.gradient(network, ahead) / n + settings["lambda"] / n * ahead
                mean = 0.9 * mean + 0.1 * slope
                square = 0.999 * square + 0.001 * slope ** 2
                ahead = ahead - settings["learning_rate"] * (mean / (1.0 - 0.9 ** update)) / (
                    np.sqrt(square / (1.0 - 0.999 ** update)) + 1e-8)
            # Adam divides a gradient by its size: where its terms cancel to a hundredth, 1e-6 of them are 1e-4.
            self.assertTrue(np.linalg.norm(arrived - ahead) <= 1e-4 * np.linalg.norm(ahead - first),
                            f"round {number + 1}: {np.linalg.norm(arrived - ahead) / np.linalg.norm(ahead - first)}")
        self.assertGreater(trained, 20)
        self.assertGreater(certain_orders, 100)
        self.assertGreater(uncertain_orders, 100)
        self.assertGreater(most_blocks, 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)

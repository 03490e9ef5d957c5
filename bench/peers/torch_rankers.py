"""The work of a round in PyTorch, from the formulas of docs/MATH.md, in two versions: plain, as in the literature's pseudo-code,
and with the same algebra as olrank (factors, Gram products). f(x) = sqrt(m) w2 . relu(W1 x), parameters flat: W1 by rows, then w2."""

import torch


class Network:
    def __init__(self, features, width, theta, device):
        self.features, self.width = features, width
        self.theta = theta.to(device=device, dtype=torch.float32)
        self.parameters = width * features + width

    def weights(self, theta):
        split = self.width * self.features
        return theta[:split].view(self.width, self.features), theta[split:]

    def scores(self, theta, docs):
        first, second = self.weights(theta)
        return self.width ** 0.5 * torch.relu(docs @ first.T) @ second


# Plain: every gradient is written out with its p numbers.

def gradients(network, docs):
    """[V x p], one backward pass per document, with torch.func."""
    of_doc = torch.func.grad(lambda theta, doc: network.scores(theta, doc.unsqueeze(0)).squeeze(0))
    return torch.func.vmap(of_doc, in_dims=(None, 0))(network.theta, docs).double()


def plain_diagonal_widths(network, docs, diagonal):
    """For every pair, the squared norm of the gradient difference under the diagonal."""
    g = gradients(network, docs)
    count = len(docs)
    width_sq = torch.zeros(count, count, dtype=torch.float64, device=docs.device)
    for i in range(count):
        for j in range(i + 1, count):
            difference = g[i] - g[j]
            width_sq[i, j] = width_sq[j, i] = (difference * difference / diagonal).sum() / network.width
    return width_sq


def plain_full_widths(network, docs, inverse, rows=None):
    """For every pair (of the first `rows` documents with all), g A^-1 g."""
    g = gradients(network, docs)
    count = len(docs)
    width_sq = torch.zeros(count, count, dtype=torch.float64, device=docs.device)
    for i in range(count if rows is None else rows):
        for j in range(i + 1, count):
            difference = g[i] - g[j]
            width_sq[i, j] = width_sq[j, i] = difference @ (inverse @ difference) / network.width
    return width_sq


def plain_training_step(network, theta, first, winners, losers, ridge, step):
    theta = theta.detach().requires_grad_(True)
    loss = -torch.nn.functional.logsigmoid(network.scores(theta, winners) - network.scores(theta, losers)).sum()
    loss = loss + ridge * ((theta - first) ** 2).sum()
    gradient, = torch.autograd.grad(loss, theta)
    return (theta - step * gradient).detach()


def written_out_training_step(network, theta, first, docs, ridge, step):
    """Takes the step without autograd: one forward and one backward pass over winners, then losers."""
    w1, w2 = network.weights(theta)
    scale, pairs = network.width ** 0.5, len(docs) // 2
    hidden = torch.relu(docs @ w1.T)
    scores = scale * (hidden @ w2)
    slopes = torch.sigmoid(scores[:pairs] - scores[pairs:]) - 1
    slopes = scale * torch.cat((slopes, -slopes))
    deltas = (hidden > 0) * torch.outer(slopes, w2)
    gradient = torch.cat(((deltas.T @ docs).flatten(), hidden.T @ slopes)) + 2 * ridge * (theta - first)
    return theta - step * gradient


# These use olrank's algebra: k(x, x') = (delta . delta')(x . x') + h . h', and V quadratic forms instead of V^2.

def factors(network, docs):
    first, second = network.weights(network.theta)
    hidden = torch.relu(docs @ first.T)
    delta = network.width ** 0.5 * (hidden > 0) * second
    return docs.double(), delta.double(), network.width ** 0.5 * hidden.double()


def kernel(a, b):
    return (a[1] @ b[1].T) * (a[0] @ b[0].T) + a[2] @ b[2].T


def pair_kernel(winners, losers, b):
    return kernel(winners, b) - kernel(losers, b)


def widths_of(forms):
    diagonal = forms.diagonal()
    return (diagonal[:, None] + diagonal[None, :] - 2 * forms).clamp_min(0)


def gram_diagonal_widths(network, docs, diagonal):
    inputs, delta, hidden = factors(network, docs)
    first, second = network.weights(1 / diagonal)
    weighted = first[:, None, :] * inputs[None, :, :]                     # [m x V x d]
    products = weighted @ inputs.T                                        # [m x V x V]
    forms = torch.einsum("im,jm,mij->ij", delta, delta, products) + (hidden * second) @ hidden.T
    return widths_of(forms / network.width)


class GramPosterior:
    """A = lambda I + G_n^T G_n / m in its dual form, all pairs at one theta."""

    def __init__(self, network, winners, losers, ridge):
        self.network, self.ridge = network, ridge
        self.winners, self.losers = factors(network, winners), factors(network, losers)
        among = pair_kernel(self.winners, self.losers, self.winners) - pair_kernel(self.winners, self.losers, self.losers)
        self.lower = torch.linalg.cholesky(among / network.width + ridge * torch.eye(len(winners), dtype=torch.float64,
                                                                                      device=winners.device))

    def widths(self, docs):
        rows = factors(self.network, docs)
        cross = pair_kernel(self.winners, self.losers, rows) / self.network.width
        solved = torch.linalg.solve_triangular(self.lower, cross, upper=False)
        return widths_of((kernel(rows, rows) / self.network.width - solved.T @ solved) / self.ridge)

"""How good features are: a linear classifier and neighbours on them, by scikit-learn."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

TEMPERATURE = 0.07  # of the neighbours' votes, as in Wu et al., "Unsupervised Feature Learning", 2018, and DINO
MOST_ITERATIONS = 1000

Split = tuple[np.ndarray, np.ndarray]  # features (S, C) and labels (S,)


def score_linear(train: Split, test: Split, c: float = 1.0) -> tuple[float, int]:
    """Top-1 in percent of a logistic regression on features of unit variance, and how many parameters it has.

    ``c`` is the inverse of its L2 penalty, as scikit-learn's.
    """
    probe = make_pipeline(StandardScaler(), LogisticRegression(C=c, max_iter=MOST_ITERATIONS)).fit(*train)
    return 100 * float(probe.score(*test)), int(probe[-1].coef_.size + probe[-1].intercept_.size)


def score_neighbours(train: Split, test: Split, k: int = 20) -> float:
    """Top-1 in percent of the k training images of the highest cosine, each with the vote ``exp(cosine / 0.07)``."""
    votes = KNeighborsClassifier(
        min(k, len(train[1])), metric='cosine', weights=lambda distances: np.exp(-distances / TEMPERATURE)
    )
    return 100 * float(votes.fit(*train).score(*test))

"""A small generated town: a thousand people, and who knows whom (public)."""

import networkx as nx
import numpy as np

_SIZE, _MEETINGS = 1000, 9000
_SHARES = [0.3, 0.25, 0.2, 0.15, 0.1]  # of the quarters
_CLUBS = (8, 22)  # least and largest number of members


def town() -> nx.Graph:
    """Draw 1,000 people of five quarters.

    Each person is in two clubs of the quarter on average, where most members know each other. Others meet by
    chance, mostly within the quarter; a few people know many.

    Returns:
        A graph whose nodes are ``p1`` to ``p1000``.
    """
    rng = np.random.default_rng(0)
    quarter = np.sort(rng.choice(len(_SHARES), _SIZE, p=_SHARES))
    fame = rng.normal(0, 0.8, _SIZE)
    first, second = np.triu_indices(_SIZE, k=1)
    likely = fame[first] + fame[second] + np.log(80) * (quarter[first] == quarter[second])
    met = np.argsort(likely + rng.gumbel(size=len(first)))[-_MEETINGS:]
    pairs = [*zip(first[met].tolist(), second[met].tolist(), strict=True)]
    for place in range(len(_SHARES)):
        for _ in range(2):
            people = rng.permutation(np.flatnonzero(quarter == place))
            while len(people):
                members, people = np.split(people, [rng.integers(*_CLUBS)])
                one, other = np.triu_indices(len(members), k=1)
                knows = rng.random(len(one)) < 0.6
                pairs += zip(
                    members[one[knows]].tolist(), members[other[knows]].tolist(), strict=True
                )
    graph = nx.Graph()
    graph.add_nodes_from(f"p{person + 1}" for person in range(_SIZE))
    graph.add_edges_from((f"p{one + 1}", f"p{other + 1}") for one, other in pairs)
    return graph

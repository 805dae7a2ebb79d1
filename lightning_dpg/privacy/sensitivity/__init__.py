"""Declared sensitivities, one file per quantity that is bounded.

Each docstring is the proof that ledger entries name.
"""

from lightning_dpg.privacy.sensitivity.amounts import (
    amount_count_sensitivity,
    amount_sum_sensitivity,
    pair_number_sensitivity,
    strength_sensitivity,
    transfer_number_sensitivity,
)
from lightning_dpg.privacy.sensitivity.attribute_moments import (
    edge_moment_sensitivity,
    node_moment_sensitivity,
)
from lightning_dpg.privacy.sensitivity.counts import (
    branch_sensitivity,
    edge_count_sensitivity,
    edge_partition_sensitivity,
    edges_per_graph_sensitivity,
    pair_bit_sensitivity,
)
from lightning_dpg.privacy.sensitivity.degrees import (
    degree_l1_sensitivity,
    degree_sensitivity,
    largest_degrees_sensitivity,
)
from lightning_dpg.privacy.sensitivity.dendrograms import log_likelihood_sensitivity
from lightning_dpg.privacy.sensitivity.event_times import (
    event_count_sensitivity,
    relation_contact_sensitivity,
    relation_gap_sensitivity,
    transfer_contact_sensitivity,
    transfer_gap_sensitivity,
)
from lightning_dpg.privacy.sensitivity.gradients import (
    client_update_sensitivity,
    edge_gradient_sensitivity,
)
from lightning_dpg.privacy.sensitivity.joint_degrees import (
    joint_degree_sensitivity,
    weighted_joint_degree_sensitivity,
)
from lightning_dpg.privacy.sensitivity.matrix_products import node_edge_count_sensitivity
from lightning_dpg.privacy.sensitivity.neighbor_sums import (
    aggregation_sensitivity,
    earlier_neighbor_sensitivity,
)
from lightning_dpg.privacy.sensitivity.neighbor_votes import (
    node_vote_moment_sensitivity,
    vote_moment_sensitivity,
    vote_sensitivity,
)
from lightning_dpg.privacy.sensitivity.normalized_mixing import (
    mixing_edge_sensitivity,
    mixing_row_sensitivity,
)
from lightning_dpg.privacy.sensitivity.pooled_statistics import (
    pooled_component_sensitivity,
    pooled_degree_sensitivity,
    pooled_triangle_sensitivity,
)
from lightning_dpg.privacy.sensitivity.private_rows import row_table_sensitivity
from lightning_dpg.privacy.sensitivity.projected_degrees import (
    projected_degree_sensitivity,
    projected_edge_count_sensitivity,
    projected_histogram_sensitivity,
)
from lightning_dpg.privacy.sensitivity.reported_labels import reported_label_sensitivity
from lightning_dpg.privacy.sensitivity.wedges import (
    label_wedge_sensitivity,
    wedge_sensitivity,
)

__all__ = [
    "aggregation_sensitivity",
    "amount_count_sensitivity",
    "amount_sum_sensitivity",
    "branch_sensitivity",
    "client_update_sensitivity",
    "degree_l1_sensitivity",
    "degree_sensitivity",
    "earlier_neighbor_sensitivity",
    "edge_count_sensitivity",
    "edge_gradient_sensitivity",
    "edge_moment_sensitivity",
    "edge_partition_sensitivity",
    "edges_per_graph_sensitivity",
    "event_count_sensitivity",
    "joint_degree_sensitivity",
    "label_wedge_sensitivity",
    "largest_degrees_sensitivity",
    "log_likelihood_sensitivity",
    "mixing_edge_sensitivity",
    "mixing_row_sensitivity",
    "node_edge_count_sensitivity",
    "node_moment_sensitivity",
    "node_vote_moment_sensitivity",
    "pair_bit_sensitivity",
    "pair_number_sensitivity",
    "pooled_component_sensitivity",
    "pooled_degree_sensitivity",
    "pooled_triangle_sensitivity",
    "projected_degree_sensitivity",
    "projected_edge_count_sensitivity",
    "projected_histogram_sensitivity",
    "relation_contact_sensitivity",
    "relation_gap_sensitivity",
    "reported_label_sensitivity",
    "row_table_sensitivity",
    "strength_sensitivity",
    "transfer_contact_sensitivity",
    "transfer_gap_sensitivity",
    "transfer_number_sensitivity",
    "vote_moment_sensitivity",
    "vote_sensitivity",
    "wedge_sensitivity",
    "weighted_joint_degree_sensitivity",
]

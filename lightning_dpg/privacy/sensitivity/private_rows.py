"""Sensitivity of tables of nodes by their private columns."""


def row_table_sensitivity(num_tables: int) -> int:
    """L1 sensitivity of tables of nodes by private columns, under the columns of one node: 2 T.

    Each of T tables counts all nodes by some of their private columns and by a class, which is public
    or a function of earlier releases. If the columns of one node are exchanged, it leaves one cell of
    each table and enters another; its class stays. A table that counts each node c times moves as much
    as c tables.

    Under edges the sensitivity is 0, so that the read costs an edge nothing: with the classes fixed, no
    cell depends on an edge. Classes of the true degrees would be different: an edge moves two nodes.

    Args:
        num_tables: Number T of tables (public), where one that counts each node c times counts as c.
    """
    return 2 * num_tables

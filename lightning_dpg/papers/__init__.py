"""Methods of papers, each paper in a folder of its own."""

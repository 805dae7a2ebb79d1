"""Files and objects that hold graphs: everything that is read or written."""

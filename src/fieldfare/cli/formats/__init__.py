"""Files that commands read and write, and the texts that commands print."""

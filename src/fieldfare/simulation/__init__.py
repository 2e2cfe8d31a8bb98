"""A network in a box: brokers and clients in virtual time, with links, faults, and a checker of what they did."""

"""The laboratory of Fieldfare: experiments of the literature, benchmarks against peers, films of simulated cities.

A distribution of its own, `fieldfare-lab`: the product never imports the laboratory.
"""

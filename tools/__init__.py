"""Commands for the people who work on Fieldfare: measuring, trying, keeping the habits of the house."""

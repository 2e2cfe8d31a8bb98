"""The pipeline under load: the bars that `fieldfare bench pipeline` holds it against, one module for each."""

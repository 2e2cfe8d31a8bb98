"""What clients and nodes say to each other on a WebSocket, and how it is written."""

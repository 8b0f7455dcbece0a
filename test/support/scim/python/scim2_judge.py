"""Runs every check of scim2-tester against the gateway at argv[1] with the token in SCIM_TOKEN; prints them as JSON."""

import json
import os
import sys

from httpx2 import Client
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import check_server

client = Client(
    base_url=sys.argv[1],
    headers={"Authorization": f"Bearer {os.environ['SCIM_TOKEN']}"},
    timeout=20,
    trust_env=False,
)
results = check_server(SyncSCIMClient(client))
json.dump(
    [
        {
            "status": result.status.name,
            "title": result.title,
            "resourceType": result.resource_type,
            "reason": result.reason,
        }
        for result in results
    ],
    sys.stdout,
)

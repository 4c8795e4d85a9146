"""Calls the platform with the client that openapi-python-client generated from its OpenAPI document, as main.go does."""
import os

from hangar_client import AuthenticatedClient
from hangar_client.api.apps import get_v1_apps_app_name, post_v1_apps
from hangar_client.api.images import post_v1_images_import
from hangar_client.api.machines import get_v1_apps_app_name_machines, post_v1_apps_app_name_machines
from hangar_client.models import PostV1AppsAppNameMachinesBody, PostV1AppsBody

client = AuthenticatedClient(base_url=os.environ["HANGAR_URL"], token=os.environ["HANGAR_TOKEN"])
app = post_v1_apps.sync(client=client, body=PostV1AppsBody(app_name="from-python"))
body = PostV1AppsAppNameMachinesBody.from_dict({"config": {"image": "web:1"}})
machine = post_v1_apps_app_name_machines.sync(app.name, client=client, body=body)
listed = get_v1_apps_app_name_machines.sync(app.name, client=client)
refused = get_v1_apps_app_name.sync("nowhere", client=client)
assert callable(post_v1_images_import.sync), "routes that take bytes are generated too"
print(app.name, listed[0].id == machine.id, refused.status)

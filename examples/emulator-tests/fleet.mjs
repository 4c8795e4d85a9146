/** Keeps `count` machines of an app: makes what is missing, destroys what is too many. */
export async function keep(client, app_name, count, config) {
  const machines = await client.call("GET /v1/apps/:app_name/machines", { params: { app_name }, query: {} });
  for (let n = machines.length; n < count; n++) {
    await client.call("POST /v1/apps/:app_name/machines", { params: { app_name }, body: { config } });
  }
  for (const { id } of machines.slice(count)) {
    const params = { app_name, machine_id: id };
    await client.call("DELETE /v1/apps/:app_name/machines/:machine_id", { params, query: { force: true } });
  }
}

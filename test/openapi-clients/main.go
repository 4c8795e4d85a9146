// Calls the platform with the client that oapi-codegen generated from its OpenAPI document: creates an app and a machine, reads
// both, and reads an error. HANGAR_URL and HANGAR_TOKEN say where and as whom.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"hangar/test/openapi-clients/api"
)

func main() {
	token := api.WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("HANGAR_TOKEN"))
		return nil
	})
	client, err := api.NewClientWithResponses(os.Getenv("HANGAR_URL"), token)
	if err != nil {
		log.Fatal(err)
	}
	ctx, app, image := context.Background(), "from-go", "web:1"
	made, err := client.PostV1AppsWithResponse(ctx, nil, api.PostV1AppsJSONRequestBody{AppName: &app})
	if err != nil || made.JSON201 == nil {
		log.Fatalf("create the app: %v %s", err, made.Body)
	}
	body := api.PostV1AppsAppNameMachinesJSONRequestBody{}
	body.Config.Image = image
	machine, err := client.PostV1AppsAppNameMachinesWithResponse(ctx, app, nil, body)
	if err != nil || machine.JSON200 == nil {
		log.Fatalf("create the machine: %v %s", err, machine.Body)
	}
	listed, err := client.GetV1AppsAppNameMachinesWithResponse(ctx, app, nil)
	if err != nil || listed.JSON200 == nil {
		log.Fatalf("list machines: %v %s", err, listed.Body)
	}
	refused, err := client.GetV1AppsAppNameWithResponse(ctx, "nowhere")
	if err != nil || refused.JSON404 == nil {
		log.Fatalf("read an unknown app: %v %s", err, refused.Body)
	}
	fmt.Println(made.JSON201.Name, (*listed.JSON200)[0].Id == machine.JSON200.Id, refused.JSON404.Status)
}

// Calls every method of fly-go's flaps client against a listener of the platform, and prints one line of JSON for each:
// which call, and what went wrong. FLY_FLAPS_BASE_URL and FLY_API_TOKEN say where and as whom.
package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"os"
	"reflect"
	"sort"
	"time"

	fly "github.com/superfly/fly-go"
	"github.com/superfly/fly-go/flaps"
	"github.com/superfly/fly-go/tokens"
	"golang.org/x/crypto/nacl/auth"
	"golang.org/x/crypto/nacl/secretbox"
)

type report struct {
	Call  string `json:"call"`
	Error string `json:"error,omitempty"`
}

var called = map[string]bool{}
var failed = false

func say(call string, err error) {
	line := report{Call: call}
	if err != nil {
		line.Error = err.Error()
		failed = true
	}
	called[call] = true
	out, _ := json.Marshal(line)
	fmt.Println(string(out))
}

func want(ok bool, format string, parts ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, parts...)
}

// An error of a call that must be refused, in these words.
func refused(err error, status int, text string) error {
	var of *flaps.FlapsError
	if !errors.As(err, &of) {
		return fmt.Errorf("want a refusal, got %v", err)
	}
	if of.ResponseStatusCode != status || of.OriginalError.Error() != text || of.FlyRequestId == "" {
		return fmt.Errorf("want %d %q, got %d %q (request %q)", status, text, of.ResponseStatusCode, of.OriginalError, of.FlyRequestId)
	}
	return nil
}

func main() {
	log.SetOutput(io.Discard)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	client, err := flaps.NewWithOptions(ctx, flaps.NewClientOpts{
		UserAgent: "fly-go-judge",
		Tokens:    tokens.Parse(os.Getenv("FLY_API_TOKEN")),
	})
	if err != nil {
		say("NewWithOptions", err)
		os.Exit(1)
	}
	app := os.Getenv("FLY_APP_NAME")
	apps(ctx, client, app)
	volume := volumes(ctx, client, app)
	machines(ctx, client, app)
	secrets(ctx, client, app)
	secretKeys(ctx, client, app)
	addresses(ctx, client, app)
	certificates(ctx, client, app)
	platform(ctx, client)
	_, err = client.DeleteVolume(ctx, app, volume)
	say("DeleteVolume", err)
	say("DeleteApp", client.DeleteApp(ctx, app))
	uncalled(client)
	if failed {
		os.Exit(1)
	}
}

// Fails for methods that a newer client has and nothing here calls.
func uncalled(client *flaps.Client) {
	var missing []string
	of := reflect.TypeOf(client)
	for i := range of.NumMethod() {
		if name := of.Method(i).Name; !called[name] {
			missing = append(missing, name)
		}
	}
	sort.Strings(missing)
	say("(every method is called)", want(len(missing) == 0, "nothing calls %v", missing))
}

func apps(ctx context.Context, client *flaps.Client, name string) {
	free, err := client.AppNameAvailable(ctx, name)
	say("AppNameAvailable", errors.Join(err, want(free, "the name is not available")))
	made, err := client.CreateApp(ctx, flaps.CreateAppRequest{Name: name, Org: "personal"})
	if err == nil {
		err = want(made.Name == name && made.ID != "", "made %+v", made)
	}
	say("CreateApp", err)
	found, err := client.GetApp(ctx, name)
	if err == nil {
		err = want(found.Name == name && found.Organization.Slug == "personal" && found.InternalNumericID != 0 && found.CnameTarget == name+".localhost", "got %+v", found)
	}
	_, unknown := client.GetApp(ctx, name+"-no")
	say("GetApp", errors.Join(err, refused(unknown, 404, "app not found")))
	all, err := client.ListApps(ctx, flaps.ListAppsRequest{OrgSlug: "personal"})
	say("ListApps", errors.Join(err, want(len(all) == 1, "listed %d apps", len(all))))
	say("WaitForApp", client.WaitForApp(ctx, name))
	request, err := client.NewRequest(ctx, http.MethodGet, "/apps/"+name, nil, nil)
	say("NewRequest", errors.Join(err, want(request != nil && request.URL.Path == "/v1/apps/"+name, "asks %v", request)))
}

func volumes(ctx context.Context, client *flaps.Client, app string) string {
	yes, no, size, retention := true, false, 1, 7
	made, err := client.CreateVolume(ctx, app, fly.CreateVolumeRequest{
		Name: "data", Region: "", SizeGb: &size, Encrypted: &no, RequireUniqueZone: &no, AutoBackupEnabled: &yes,
		ComputeRequirements: &fly.MachineGuest{CPUKind: "shared", CPUs: 1, MemoryMB: 256},
	})
	if err == nil {
		err = want(made.ID != "" && made.SizeGb == 1 && made.HostStatus == "ok", "made %+v", made)
	}
	say("CreateVolume", err)
	if made == nil {
		os.Exit(1)
	}
	found, err := client.GetVolume(ctx, app, made.ID)
	if err == nil {
		err = want(found.Name == "data" && !found.CreatedAt.IsZero() && !found.IsAttached(), "got %+v", found)
	}
	say("GetVolume", err)
	all, err := client.GetVolumes(ctx, app)
	say("GetVolumes", errors.Join(err, want(len(all) == 1, "listed %d", len(all))))
	all, err = client.GetAllVolumes(ctx, app)
	say("GetAllVolumes", errors.Join(err, want(len(all) == 1, "listed %d", len(all))))
	changed, err := client.UpdateVolume(ctx, app, made.ID, fly.UpdateVolumeRequest{SnapshotRetention: &retention})
	if err == nil {
		err = want(changed.SnapshotRetention == 7, "changed %+v", changed)
	}
	say("UpdateVolume", err)
	extended, _, err := client.ExtendVolume(ctx, app, made.ID, 2)
	if err == nil {
		err = want(extended.SizeGb == 2, "extended %+v", extended)
	}
	say("ExtendVolume", err)
	say("CreateVolumeSnapshot", client.CreateVolumeSnapshot(ctx, app, made.ID))
	snapshots, err := client.GetVolumeSnapshots(ctx, app, made.ID)
	// The order is taken at once, the snapshot a moment later.
	for err == nil && len(snapshots) == 0 && ctx.Err() == nil {
		time.Sleep(50 * time.Millisecond)
		snapshots, err = client.GetVolumeSnapshots(ctx, app, made.ID)
	}
	if err == nil {
		err = want(len(snapshots) == 1 && !snapshots[0].CreatedAt.IsZero(), "snapshots %+v", snapshots)
	}
	say("GetVolumeSnapshots", err)
	return made.ID
}

func config() *fly.MachineConfig {
	port, timeout, stop := 8080, fly.Duration{Duration: 2 * time.Second}, "stop"
	yes := true
	autostop := new(fly.MachineAutostop)
	_ = autostop.UnmarshalText([]byte(stop))
	return &fly.MachineConfig{
		Image:    os.Getenv("FLY_IMAGE"),
		Guest:    &fly.MachineGuest{CPUKind: "shared", CPUs: 1, MemoryMB: 256},
		Metadata: map[string]string{"fly_platform_version": "v2", "fly_process_group": "app"},
		Restart:  &fly.MachineRestart{Policy: fly.MachineRestartPolicyAlways},
		Checks:   map[string]fly.MachineCheck{"alive": {Type: &[]string{"tcp"}[0], Port: &port, Interval: &timeout}},
		Services: []fly.MachineService{{
			Protocol: "tcp", InternalPort: 8080, Autostart: &yes, Autostop: autostop,
			Ports: []fly.MachinePort{{Port: fly.IntPointer(80), Handlers: []string{"http"}}},
		}},
	}
}

func machines(ctx context.Context, client *flaps.Client, app string) {
	made, err := client.Launch(ctx, app, fly.LaunchMachineInput{Config: config(), Name: "Web-One"})
	if err == nil {
		err = want(made.Name == "web-one" && made.HostStatus == "ok" && made.InstanceID == made.Version && made.LeaseNonce == "", "made %+v", made)
	}
	say("Launch", err)
	if made == nil {
		os.Exit(1)
	}
	id := made.ID
	say("Wait", client.Wait(ctx, app, id, flaps.WithWaitStates("started"), flaps.WithWaitTimeout(50*time.Second)))
	found, err := client.Get(ctx, app, id)
	if err == nil {
		err = want(len(found.Checks) == 1 && found.Checks[0].Name == "alive" && found.Config != nil && found.ImageRef.Repository != "", "got %+v", found)
		_, started := found.MostRecentStartTimeAfterLaunch()
		err = errors.Join(err, started)
	}
	_, unknown := client.Get(ctx, app, "00000000000000")
	say("Get", errors.Join(err, refused(unknown, 404, "machine not found: 00000000000000")))
	many, err := client.GetMany(ctx, app, []string{id})
	say("GetMany", errors.Join(err, want(len(many) == 1, "got %d", len(many))))
	listed, err := client.List(ctx, app, "state=started")
	say("List", errors.Join(err, want(len(listed) == 1, "listed %d", len(listed))))
	listed, err = client.ListActive(ctx, app)
	say("ListActive", errors.Join(err, want(len(listed) == 1, "listed %d", len(listed))))
	listed, release, err := client.ListFlyAppsMachines(ctx, app)
	say("ListFlyAppsMachines", errors.Join(err, want(len(listed) == 1 && release == nil, "listed %d", len(listed))))
	inside(ctx, client, app, id)
	nonce := leases(ctx, client, app, id)
	life(ctx, client, app, id, nonce)
}

func inside(ctx context.Context, client *flaps.Client, app, id string) {
	ran, err := client.Exec(ctx, app, id, &fly.MachineExecRequest{Cmd: "echo hello"})
	if err == nil {
		err = want(ran.ExitCode == 0, "ran %+v", ran)
	}
	say("Exec", err)
	_, err = client.GetProcesses(ctx, app, id)
	say("GetProcesses", err)
	say("SetMetadata", client.SetMetadata(ctx, app, id, "colour", "red"))
	all, err := client.GetMetadata(ctx, app, id)
	say("GetMetadata", errors.Join(err, want(all["colour"] == "red", "metadata %v", all)))
	say("DeleteMetadata", client.DeleteMetadata(ctx, app, id, "colour"))
}

func leases(ctx context.Context, client *flaps.Client, app, id string) string {
	ttl := 120
	_, unheld := client.FindLease(ctx, app, id)
	lease, err := client.AcquireLease(ctx, app, id, &ttl)
	if err == nil {
		err = want(lease.Status == "success" && lease.Data.Nonce != "", "lease %+v", lease)
	}
	say("AcquireLease", err)
	if lease == nil || lease.Data == nil {
		os.Exit(1)
	}
	nonce := lease.Data.Nonce
	found, err := client.FindLease(ctx, app, id)
	if err == nil {
		err = want(found.Data.Nonce == nonce, "lease %+v", found.Data)
	}
	say("FindLease", errors.Join(err, refused(unheld, 404, "machine ID "+id+" lease not found")))
	again, err := client.RefreshLease(ctx, app, id, &ttl, nonce)
	if err == nil {
		err = want(again.Data.Nonce == nonce, "another nonce: %+v", again.Data)
	}
	say("RefreshLease", err)
	return nonce
}

func life(ctx context.Context, client *flaps.Client, app, id, nonce string) {
	stop := fly.StopMachineInput{ID: id}
	var held *flaps.FlapsError
	say("(the lease holds)", want(errors.As(client.Stop(ctx, app, stop, ""), &held) && held.ResponseStatusCode == 409, "stopped without the nonce"))
	say("Cordon", client.Cordon(ctx, app, id, nonce))
	say("Uncordon", client.Uncordon(ctx, app, id, nonce))
	changed := config()
	changed.Env = map[string]string{"COLOUR": "red", "EMPTY": ""}
	updated, err := client.Update(ctx, app, fly.LaunchMachineInput{ID: id, Config: changed}, nonce)
	if err == nil {
		value, there := updated.Config.Env["EMPTY"]
		err = want(updated.Config.Env["COLOUR"] == "red" && there && value == "", "updated %+v", updated.Config)
	}
	say("Update", err)
	wait := func(state string) error { return client.Wait(ctx, app, id, flaps.WithWaitStates(state)) }
	err = wait("started")
	say("Restart", errors.Join(err, client.Restart(ctx, app, fly.RestartMachineInput{ID: id, Timeout: time.Second}, nonce), wait("started")))
	say("Suspend", errors.Join(client.Suspend(ctx, app, id, nonce), client.Wait(ctx, app, id, flaps.WithWaitStates("suspended", "stopped"))))
	started, err := client.Start(ctx, app, id, nonce)
	if err == nil {
		err = want(started.PreviousState != "", "started %+v", started)
	}
	say("Start", errors.Join(err, wait("started")))
	say("Stop", errors.Join(client.Stop(ctx, app, stop, nonce), wait("stopped")))
	_, err = client.Start(ctx, app, id, nonce)
	err = errors.Join(err, wait("started"))
	say("ReleaseLease", client.ReleaseLease(ctx, app, id, nonce))
	say("Kill", errors.Join(err, client.Kill(ctx, app, id)))
	say("Destroy", errors.Join(client.Destroy(ctx, app, fly.RemoveMachineInput{ID: id, Kill: true}, ""), wait("destroyed")))
}

func secrets(ctx context.Context, client *flaps.Client, app string) {
	set, err := client.SetAppSecret(ctx, app, "COLOUR", "red")
	if err == nil {
		err = want(set.Name == "COLOUR" && set.Version > 0, "set %+v", set)
	}
	say("SetAppSecret", err)
	found, err := client.GetAppSecrets(ctx, app, "COLOUR", nil, false)
	if err == nil {
		err = want(found.Digest != "" && found.Value == nil, "got %+v", found)
	}
	say("GetAppSecrets", err)
	blue := "blue"
	changed, err := client.UpdateAppSecrets(ctx, app, map[string]*string{"OTHER": &blue, "COLOUR": nil})
	if err == nil {
		err = want(len(changed.Secrets) == 1 && changed.Version > set.Version, "changed %+v", changed)
	}
	say("UpdateAppSecrets", err)
	all, err := client.ListAppSecrets(ctx, app, nil, false)
	say("ListAppSecrets", errors.Join(err, want(len(all) == 1 && all[0].Name == "OTHER", "listed %+v", all)))
	gone, err := client.DeleteAppSecret(ctx, app, "OTHER")
	if err == nil {
		err = want(gone.Version > changed.Version, "deleted %+v", gone)
	}
	say("DeleteAppSecret", err)
}

// What the platform does with a key is checked with Go's own implementations.
func secretKeys(ctx context.Context, client *flaps.Client, app string) {
	text := []byte("attack at dawn")
	var key [32]byte
	copy(key[:], "thirty-two bytes that Go knows.!")
	set, err := client.SetSecretKey(ctx, app, "boxv1", fly.SECRETKEY_TYPE_NACL_SECRETBOX, key[:])
	if err == nil {
		err = want(set.Name == "boxv1" && set.Type == fly.SECRETKEY_TYPE_NACL_SECRETBOX && set.Version == 1, "set %+v", set)
	}
	say("SetSecretKey", err)
	sealed, err := client.EncryptSecretKey(ctx, app, "boxv1", text, nil, nil)
	if err == nil {
		var nonce [24]byte
		copy(nonce[:], sealed.Ciphertext)
		opened, ok := secretbox.Open(nil, sealed.Ciphertext[24:], &nonce, &key)
		err = want(ok && bytes.Equal(opened, text), "secretbox cannot open the ciphertext")
	}
	say("EncryptSecretKey", err)
	own := [24]byte{7}
	opened, err := client.DecryptSecretKey(ctx, app, "boxv1", secretbox.Seal(own[:], text, &own, &key), nil, nil)
	if err == nil {
		err = want(bytes.Equal(opened.Plaintext, text), "decrypted %q", opened.Plaintext)
	}
	say("DecryptSecretKey", err)

	_, err = client.SetSecretKey(ctx, app, "macv1", fly.SECRETKEY_TYPE_NACL_AUTH, key[:])
	mac, signing := client.SignSecretKey(ctx, app, "macv1", text, nil)
	if err = errors.Join(err, signing); err == nil {
		err = want(auth.Verify(mac.Signature, text, &key), "auth does not verify the signature")
	}
	made, generating := client.GenerateSecretKey(ctx, app, "ecv1", fly.SECRETKEY_TYPE_ES256)
	signed, signing := client.SignSecretKey(ctx, app, "ecv1", text, nil)
	if err = errors.Join(err, generating, signing); err == nil {
		public, parsing := x509.ParsePKIXPublicKey(made.Publickey)
		hash, half := sha256.Sum256(text), len(signed.Signature)/2
		r, s := new(big.Int).SetBytes(signed.Signature[:half]), new(big.Int).SetBytes(signed.Signature[half:])
		err = errors.Join(parsing, want(ecdsa.Verify(public.(*ecdsa.PublicKey), hash[:], r, s), "ecdsa does not verify the signature"))
	}
	say("GenerateSecretKey", generating)
	say("SignSecretKey", err)
	wrong := client.VerifySecretKey(ctx, app, "macv1", append(text, '!'), auth.Sum(text, &key)[:], nil)
	say("VerifySecretKey", errors.Join(client.VerifySecretKey(ctx, app, "macv1", text, auth.Sum(text, &key)[:], nil), want(wrong != nil, "verified another text")))
	found, err := client.GetSecretKey(ctx, app, "ecv1", nil)
	if err == nil {
		err = want(found.Name == "ecv1" && found.Type == "es256" && len(found.Publickey) > 0, "got %+v", found)
	}
	say("GetSecretKey", err)
	say("DeleteSecretKey", client.DeleteSecretKey(ctx, app, "ecv1"))
	all, err := client.ListSecretKeys(ctx, app, nil)
	say("ListSecretKeys", errors.Join(err, want(len(all) == 2 && all[0].Name == "boxv1", "listed %+v", all)))
}

func addresses(ctx context.Context, client *flaps.Client, app string) {
	made, err := client.AssignIP(ctx, app, flaps.AssignIPRequest{Type: "shared_v4"})
	if err == nil {
		err = want(made.IP != "" && made.Shared && !made.CreatedAt.IsZero(), "made %+v", made)
	}
	say("AssignIP", err)
	all, err := client.GetIPAssignments(ctx, app)
	if err == nil {
		err = want(len(all.IPs) == 1, "listed %+v", all)
	}
	say("GetIPAssignments", err)
	if made != nil {
		say("DeleteIPAssignment", client.DeleteIPAssignment(ctx, app, made.IP))
	}
}

func platform(ctx context.Context, client *flaps.Client) {
	regions, err := client.GetRegions(ctx)
	if err == nil {
		err = want(len(regions.Regions) == 1 && regions.Nearest == regions.Regions[0].Code, "got %+v", regions)
	}
	say("GetRegions", err)
	places, err := client.GetPlacements(ctx, &flaps.GetPlacementsRequest{
		ComputeRequirements: &fly.MachineGuest{CPUKind: "shared", CPUs: 1, MemoryMB: 256}, Count: 3, Org: "personal",
	})
	if err == nil {
		err = want(len(places) == 1 && places[0].Count == 3, "got %+v", places)
	}
	say("GetPlacements", err)
}

func certificates(ctx context.Context, client *flaps.Client, app string) {
	const host, own = "judge.example.com", "own.example.com"
	made, err := client.CreateACMECertificate(ctx, app, fly.CreateCertificateRequest{Hostname: host})
	if err == nil {
		err = want(made.Hostname == host && made.AcmeRequested, "made %+v", made)
	}
	say("CreateACMECertificate", err)
	custom, err := client.CreateCustomCertificate(ctx, app, fly.ImportCertificateRequest{
		Hostname: own, Fullchain: os.Getenv("TLS_CHAIN"), PrivateKey: os.Getenv("TLS_KEY"),
	})
	if err == nil {
		err = want(custom.Hostname == own && len(custom.Certificates) == 1, "made %+v", custom)
	}
	say("CreateCustomCertificate", err)
	all, err := client.ListCertificates(ctx, app, &flaps.ListCertificatesOpts{Limit: 1})
	if err == nil {
		err = want(len(all.Certificates) == 1 && all.TotalCount == 2 && all.NextCursor != "", "listed %+v", all)
	}
	say("ListCertificates", err)
	found, err := client.GetCertificate(ctx, app, host)
	if err == nil {
		err = want(found.DNSRequirements.Ownership.Name != "", "got %+v", found)
	}
	say("GetCertificate", err)
	_, err = client.CheckCertificate(ctx, app, host)
	say("CheckCertificate", err)
	say("DeleteACMECertificate", client.DeleteACMECertificate(ctx, app, host))
	say("DeleteCustomCertificate", client.DeleteCustomCertificate(ctx, app, own))
	again, err := client.CreateACMECertificate(ctx, app, fly.CreateCertificateRequest{Hostname: host})
	say("DeleteCertificate", errors.Join(err, want(again != nil, "not made again"), client.DeleteCertificate(ctx, app, host)))
}

/**
 * What Hangar promises. A test shows a promise by having its id in its name, in brackets: "… (S1)". A promise that
 * no test names is pending, and says so in docs/RELIABILITY.md.
 */
export const PROMISES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "What is stored": {
    S1: "An acknowledged write survives kill -9 of the platform.",
    S2: "An acknowledged write survives a power cut.",
    S3: "On a full disk writes are refused, reads go on, and nothing has to be restarted when there is room again.",
    S3b: "On a full disk deleting still works.",
    S4: "After an I/O error the platform stops instead of guessing.",
    S5: "A damaged file is noticed, never read as if it were whole.",
    S6: "A migration that was interrupted anywhere goes on at the next start.",
    S7: "A data dir has one owner; a second platform is refused at once.",
    S8: "A backup taken under load is consistent.",
    S9: "Whatever call to the disk fails, nothing is half done.",
  },
  Machines: {
    M1: "Whatever step the platform dies at, a machine's state is what the machine is in.",
    M2: "No order in which several clients' requests meet breaks a machine.",
    M3: "Simulated days with every kind of fault end with everything as it was asked for.",
    M4: "Killing the platform interrupts no running machine and leaves nothing behind.",
    M5: "No machine stays between two states.",
    M6: "What was created can be read at once.",
    M7: "A request sent twice with one Idempotency-Key is carried out once.",
    M8: "Every change of state is one event, in order.",
  },
  "Leases, waits and streams": {
    L1: "A lease has one winner.",
    L2: "Who lost a lease cannot write with it any more.",
    L3: "A clock that jumps gives no lease to two, and keeps none for ever.",
    L4: "Leases survive a kill, and only their nonce releases them.",
    W1: "A thousand waiters are woken together, at little memory each.",
    W2: "No wake-up is lost between looking and waiting.",
    W3: "Waiters that vanish leave nothing behind.",
    W4: "A wait ends in its time, and says what is.",
    E1: "A slow reader of a stream hurts nobody else.",
    E2: "The event stream of a database has no gap and no duplicate over reconnects and changes of the primary.",
  },
  "Replicated databases": {
    R1: "Replicas equal the primary at every transaction, through kills of the primary.",
    R2: "Databases that went apart are brought together, and what was dropped is counted.",
    R3: "Never do two primaries accept writes in one term, whatever network and clocks do.",
    R4: "A replica survives power cuts.",
    R5: "Restarting nodes at random loses nothing.",
  },
  Volumes: {
    V1: "Volumes come and go and leave no loop device, mount or file behind.",
    V2: "A snapshot taken under write load is a clean file system with the application's data whole.",
    V3: "No byte is lost while a volume grows under a writer.",
    V4: "A volume is never made smaller, and impossible sizes are refused.",
    V5: "A volume is mounted by one machine, of its own app.",
    V6: "A volume that is unmounted is on the disk and free, whoever else had a copy of the mount.",
  },
  Metrics: {
    T1: "A crash loses at most the last seconds of samples, and never a block.",
    T2: "Damaged bytes cost only themselves.",
    T3: "What one organization stores changes no answer another one gets.",
    T4: "A scraped target cannot forge the platform's labels.",
    T5: "A hostile target costs only itself.",
    T6: "A query that costs too much ends early and names the limit.",
    T7: "No pattern makes matching slow.",
    T8: "Answers are those of Prometheus and VictoriaMetrics, but for the listed differences.",
    T9: "No query text hangs the parser or breaks it.",
  },
  "Tokens and identity": {
    A1: "Who may do what is exactly the documented table.",
    A2: "A token that was tampered with opens nothing that the original did not.",
    A3: "Narrowing a token never widens it.",
    A4: "A credential of the wrong kind is refused, and the answer names the right one.",
    A5: "A revoked token is refused at the next request.",
    A6: "No secret is ever in an answer, a log, a metric or an event.",
    J1: "Forged, stale and misdirected identity tokens are believed by nobody.",
    J2: "No two identity tokens have the same id.",
    J3: "No name can forge a token's subject.",
    J4: "Keys rotate without a token that cannot be verified.",
    J5: "A machine cannot get another machine's token.",
    J6: "What discovery publishes is exact.",
  },
  Connectors: {
    G1: "No spelling of a path gets past a policy.",
    G2: "Policies decide as they are written.",
    G3: "A connector's address cannot lead inside.",
    G4: "A name that changes its address between question and connection leads nowhere.",
    G5: "Redirects are handed back, never followed with a credential.",
    G6: "What a caller sends as credential or hop-by-hop header goes no further.",
    G7: "A credential that a provider sends back is masked.",
    G9: "A changed policy holds from the next request on.",
  },
  "HTTP and the front door": {
    P1: "No request is read in two ways, and none is smuggled.",
    P2: "Slow clients cost honest ones nothing.",
    P3: "Bodies that are too large, too deep or ambiguous are refused early.",
    P4: "Large transfers are passed on without being kept.",
    P5: "However many requests wake a machine, it is started once and all are answered.",
    P6: "A hard limit is never exceeded.",
    P7: "What a client says about itself in forwarding headers is never trusted.",
    P8: "No request that can be made from the API's own description ends in a fault of ours.",
  },
  Isolation: {
    C1: "Nothing that should be closed to a machine is open, before and after a resume.",
    C2: "The known escapes of container runtimes are refused.",
    C3: "No archive writes outside its own folder.",
    C4: "Organizations' networks are apart; no machine speaks under another's address.",
    C5: "A machine that abuses its host harms itself.",
    C6: "Files put into a machine land inside it, whatever links it makes meanwhile.",
    C7: "A memory snapshot that was changed is not resumed.",
  },
  "Leftovers, clocks, time": {
    O1: "Hundreds of lifecycles leave nothing behind.",
    O2: "Clocks that jump break no schedule, retention, check, token or lease.",
    O3: "Under mixed load memory and descriptors stay flat.",
    O4: "A new version takes over running machines; an older one refuses newer data.",
    O5: "After a reboot machines come back as their restart policy says.",
  },
  "The tests themselves": {
    Q1: "Of all small changes to the rules that decide, 85 in a hundred make a test fail.",
  },
  "Everything at once": {
    X1: "Whatever goes wrong together, nothing acknowledged is lost, no machine is doubled, and nothing is left behind.",
  },
};

export const PROMISE_IDS: ReadonlySet<string> = new Set(Object.values(PROMISES).flatMap((room) => Object.keys(room)));

/** The promises a test shows, by its name. */
export const promisesOf = (test: string): string[] =>
  [...test.matchAll(/\(([A-Z]\d+b?(?:, [A-Z]\d+b?)*)\)/g)].flatMap(([, ids = ""]) => ids.split(", "));

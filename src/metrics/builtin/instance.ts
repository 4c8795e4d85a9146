import { CPU_MODES, DISK_FIELDS, FILESYSTEM_FIELDS, MEMORY_FIELDS, NET_FIELDS, type Readings } from "./fields.ts";
import type { BuiltinSample, MachineExit, MeasuredMachine, VolumeFacts } from "./sources.ts";

type StandardLabels = { app: string; region: string; host: string; instance: string };
type Emit = (name: string, value: number, extra?: Readonly<Record<string, string>>) => void;

const standard = ({ app, region, host, instance }: StandardLabels): StandardLabels => ({ app, region, host, instance });

/** All `svc_instance_*` series of one machine; without readings only `svc_instance_up`. */
export function instanceSamples(machine: MeasuredMachine, readings: Readings | undefined): BuiltinSample[] {
  const samples: BuiltinSample[] = [];
  const labels = standard(machine);
  const emit: Emit = (name, value, extra) => {
    samples.push({
      org_id: machine.org_id,
      name: `svc_instance_${name}`,
      labels: extra ? { ...labels, ...extra } : labels,
      value,
    });
  };
  emit("up", readings ? 1 : 0);
  if (!readings) return samples;
  for (const field of MEMORY_FIELDS) emit(`memory_${field}`, readings.memory[field]);
  emitProcessor(emit, readings);
  emitWant(emit, readings);
  for (const [device, disk] of Object.entries(readings.disks)) {
    for (const field of DISK_FIELDS) emit(`disk_${field}`, disk[field], { device });
  }
  for (const [device, net] of Object.entries(readings.nets)) {
    for (const field of NET_FIELDS) emit(`net_${field}`, net[field], { device });
  }
  emit("filefd_allocated", readings.files_allocated);
  emit("filefd_maximum", readings.files_maximum);
  for (const [mount, filesystem] of Object.entries(readings.filesystems)) {
    for (const field of FILESYSTEM_FIELDS) emit(`filesystem_${field}`, filesystem[field], { mount });
  }
  return samples;
}

function emitProcessor(emit: Emit, { load, cpus, cpu_baseline, cpu_balance, cpu_throttle }: Readings): void {
  for (const [i, minutes] of ["1", "5", "15"].entries()) emit("load_average", load[i] ?? 0, { minutes });
  for (const [cpu, modes] of cpus.entries()) {
    for (const mode of CPU_MODES) emit("cpu", modes[mode], { cpu_id: String(cpu), mode });
  }
  emit("cpu_baseline", cpu_baseline);
  emit("cpu_balance", cpu_balance);
  emit("cpu_throttle", cpu_throttle);
}

/** Pressure and OOM kills. */
function emitWant(emit: Emit, { pressure = {}, oom_kills }: Readings): void {
  for (const [resource, waited] of Object.entries(pressure)) {
    for (const [kind, centiseconds] of Object.entries(waited)) emit("pressure", centiseconds, { resource, kind });
  }
  if (oom_kills !== undefined) emit("oom_kills", oom_kills);
}

/** Once per exit: a running machine does not repeat its last exit. */
export function exitSamples({ machine, exit_code, oom, vm_code }: MachineExit): BuiltinSample[] {
  const sample = (name: string, value: number): BuiltinSample => ({
    org_id: machine.org_id,
    name: `svc_instance_exit_${name}`,
    labels: standard(machine),
    value,
  });
  return [sample("code", exit_code), sample("oom", oom ? 1 : 0), sample("vm_code", vm_code)];
}

export function volumeSamples({ org_id, app, region, host, id, size_bytes, used_pct }: VolumeFacts): BuiltinSample[] {
  const labels = { app, region, host, id };
  return [
    { org_id, name: "svc_volume_size_bytes", labels, value: size_bytes },
    { org_id, name: "svc_volume_used_pct", labels, value: used_pct },
  ];
}

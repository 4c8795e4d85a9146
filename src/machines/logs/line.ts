/** A line that a machine wrote. */
export interface LogLine {
  timestamp: number;
  stream: "stdout" | "stderr";
  message: string;
}

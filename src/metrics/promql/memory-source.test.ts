import { sampleSourceSuite } from "../source.suite.ts";
import { memorySource } from "./memory-source.ts";

sampleSourceSuite("plain arrays", (data) => ({ source: memorySource(data) }));

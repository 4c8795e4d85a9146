import { metricsApiSuite } from "./metrics-api.suite.ts";
import { testPlatform } from "./platform.ts";

metricsApiSuite("the embedded engine", {
  platform: async (t) => await testPlatform(t),
  visible: async () => undefined,
  own_limits: true,
});

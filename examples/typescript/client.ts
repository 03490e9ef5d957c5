// Ranks with a client that is generated from docs/openapi.json, sends a click, and shows how the service refuses a request:
//   pip install openapi-generator-cli==7.26.0     # needs Java
//   openapi-generator-cli generate -i docs/openapi.json -g typescript-fetch -o build/typescript
//   esbuild examples/typescript/client.ts --bundle --platform=node --format=esm --outfile=build/client.mjs
//   node build/client.mjs http://127.0.0.1:8080
import { Configuration, DefaultApi, ResponseError } from "../../build/typescript";

const api = new DefaultApi(new Configuration({ basePath: process.argv[2] })); // with --token-file also accessToken: "…"
const features = (await api.stats()).features;
const docs = ["a", "b", "c"].map((id, row) => ({ id, features: Array.from({ length: features }, (_, column) => row - column) }));
const ranking = await api.rank({ rankRequest: { query: "rain jacket", docs, k: 2, incumbent: ["a", "b", "c"] } });
const told = await api.feedback({ feedback: { impression: ranking.impression!, ids: [ranking.docs[0].id] } });
console.log(`${ranking.docs.length} documents shown, round ${told.round}`);
try {
  await api.rank({ rankRequest: { query: "rain jacket", docs: [{ id: "a", features: [] }] } });
} catch (error) {
  const refusal = (await (error as ResponseError).response.json()).error;
  console.log(`${refusal.field}: ${refusal.message}`);
}

// The classifier of a network: its ONNX graph, run by onnxruntime-web, all of which lies in this page.

async function unpacked(name) {  // gzip in base64
  const bytes = Uint8Array.from(atob(place(name).textContent), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function networkClassifier() {
  const script = URL.createObjectURL(new Blob([await unpacked("glue")], {type: "text/javascript"}));
  Object.assign(ort.env.wasm, {numThreads: 1, wasmBinary: await unpacked("wasm"), wasmPaths: {mjs: script}});
  const session = await ort.InferenceSession.create(await unpacked("graph"), {executionProviders: ["wasm"]});
  return async rows => {
    const values = new Float32Array(rows.length * release.width);
    rows.forEach((row, i) => values.set(row, i * release.width));
    const result = await session.run({embeddings: new ort.Tensor("float32", values, [rows.length, release.width])});
    return Array.from(result[session.outputNames[0]].data, Number);
  };
}

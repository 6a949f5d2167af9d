// The reporter of tests that run on Node.js: a line per test, the reason of each failure, and `N passed, N failed` at the end.
export default async function* report(events) {
  let passed = 0;
  const failed = [];
  for await (const {type, data} of events) {
    if (data?.details?.type === 'suite' || (type !== 'test:pass' && type !== 'test:fail')) continue;
    // A file is a test for Node.js, which it is for nobody else; one that breaks before its tests is.
    const isFile = data.nesting === 0 && /\.(m?js)$/.test(data.name);
    if (type === 'test:pass') {
      if (isFile || data.skip !== undefined) continue;
      passed += 1;
      yield `ok     ${data.name} (${Math.round(data.details.duration_ms)} ms)\n`;
    } else {
      if (isFile && data.details.error?.failureType === 'subtestsFailed') continue;
      failed.push(data.name);
      yield `FAILED ${data.name}\n${String(data.details.error?.cause?.stack ?? data.details.error?.stack ?? data.details.error)}\n`;
    }
  }
  yield `${failed.map(name => `failed: ${name}\n`).join('')}${passed} passed, ${failed.length} failed\n`;
}

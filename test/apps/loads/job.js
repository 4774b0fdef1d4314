const { Worker, isMainThread, parentPort } = require('worker_threads');
const { execFileSync } = require('child_process');
const fs = require('fs');
const zlib = require('zlib');
function churn(n) {
    const objects = [];
    for (let i = 0; i < n; i++) objects.push({ i, text: 'x'.repeat(i % 50) });
    return objects.map(o => JSON.stringify(o)).join('').length;
}
if (isMainThread) {
    const results = [];
    for (let i = 0; i < 3; i++) {
        const worker = new Worker(__filename);
        worker.on('message', m => {
            results.push(m);
            if (results.length < 3) return;
            console.log(results);
            fs.readFileSync('gate'); // the workers have nothing left to do
            console.log(churn(200000));
            console.log(execFileSync('echo', ['child']).toString());
            zlib.gzip('y'.repeat(100000), (error, packed) => {
                console.log(error, packed.length);
                process.exit(3);
            });
        });
        worker.unref();
    }
    setTimeout(() => {}, 20000);
} else {
    parentPort.postMessage(churn(100000));
    setInterval(() => {}, 1000);
}

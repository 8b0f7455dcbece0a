import { readFileSync, writeFileSync } from 'node:fs'

/**
 * Debian's npm leaves out optional packages that its own Node.js is too old for, so `npm ci` on Debian 12 would lack
 * the compiled parts of the portal's builder. Everything here runs on the Node.js that npm installs (bin/node),
 * so the lock names no engines. `npm install` adds them again; `npm run lockfile` takes them out.
 */
const lock: { packages: Record<string, { engines?: unknown }> } = JSON.parse(readFileSync('package-lock.json', 'utf8'))
for (const entry of Object.values(lock.packages)) delete entry.engines
writeFileSync('package-lock.json', `${JSON.stringify(lock, null, 2)}\n`)

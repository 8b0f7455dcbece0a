import process from 'node:process'
import { databaseTarget } from '#adapters/targets/database/database.ts'
import { Passwords } from '#adapters/targets/database/password-hash.ts'
import { catalog } from '#catalog/catalog.ts'
import { compare } from '#features/reconciliation/read/compare.ts'
import { openSystems } from '#features/reconciliation/read/systems.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { Scope } from '#kernel/scope.ts'
import type { LookupHost, LookupTarget, Target } from '#sdk/target/target.ts'
import { openStorage } from '#server/composition/stores.ts'
import { openTarget } from '#testing/databases/sql-schema.ts'
import { leastCost } from '#testing/login/least-cost.ts'
import { loadText } from '#testing/modules/check-text.ts'
import { cpuSecondsOf, megabytesOf } from './process-figures.ts'
import type { ComparisonFigures } from './reconcile.ts'

/**
 * Compares once, and prints the figures of this process: `bin/node bench/reconcile-process.ts DATA APPLICATION`. Without an
 * application, the directory is compared with itself, as with a second one.
 */
const [dataFolder = '', application = ''] = process.argv.slice(2)

const configured = `
apiVersion: gatehouse.dev/v1
kind: Target
metadata: { name: people }
spec: { className: targets.Database }
---
apiVersion: gatehouse.dev/v1
kind: Target
metadata: { name: application }
spec: { className: targets.Database }
---
apiVersion: gatehouse.dev/v1
kind: Reconciliation
metadata: { name: application }
spec:
  source: { target: people }
  target: application
  attributes: [{ name: ${application === '' ? 'emails.value' : 'mail'}, source: emails.value, sourceType: user }]
`

let reads = 0
const counted = <T extends LookupTarget>(target: T): T => ({
  ...target,
  searchUsers: (query) => {
    reads++
    return target.searchUsers(query)
  },
})
const batch = async () => {
  reads++
  return []
}

const scope = new Scope()
const storage = openStorage({ dataFolder, clock: systemClock, log: silentLogger })
await storage.ready()
const passwords = new Passwords(storage.userDirectory({ name: 'people/passwords' }), leastCost)
const directory = () => databaseTarget(storage.userDirectory({ name: 'people' }), passwords)
const tables = async (): Promise<LookupTarget> => {
  const columns = { userTable: 'people', userName: 'login', userPrimaryKey: 'id', 'column.mail': 'mail' }
  return (await openTarget(`sqlite:${application}`, columns)) as LookupTarget
}
const targets: Readonly<Record<string, Target>> = {
  people: counted(scope.own(directory())),
  application: counted(scope.own(application === '' ? directory() : await tables())),
}
const { configuration } = loadText(configured, catalog)
const config = configuration?.reconciliations.get('application')
if (configuration === undefined || config === undefined) throw new Error('the configuration is invalid')
const host = { targets: { get: (name: string) => targets[name] } } as unknown as LookupHost
const systems = await openSystems(config, configuration, host, scope)

const before = cpuSecondsOf(process.pid)
const started = performance.now()
let peak = 0
const sampler = setInterval(() => {
  peak = Math.max(peak, megabytesOf(process.pid, 'RssAnon'))
}, 100)
let rows = 0
let agree = 0
const parts = compare({ ...systems, folder: dataFolder, log: silentLogger, links: batch, linksByTarget: batch })
for await (const { differences, counts } of parts) {
  rows += differences.length
  agree += counts.agree
}
clearInterval(sampler)
const figures: ComparisonFigures = {
  seconds: (performance.now() - started) / 1000,
  cpuSeconds: cpuSecondsOf(process.pid) - before,
  peakMegabytes: peak,
  reads,
  rows,
  agree,
}
await scope.close()
await storage.close()
console.log(JSON.stringify(figures))

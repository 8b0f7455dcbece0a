import { generateKeyPairSync, sign } from 'node:crypto'

/**
 * `node bench/bare-signing.ts SECONDS`: prints how many RSA-2048 signatures a second all cores make in the thread pool, and
 * how many microseconds of CPU one costs.
 */
const seconds = Number(process.argv[2])
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const content = Buffer.alloc(400, 'a')
let signed = 0

const one = (): Promise<void> =>
  new Promise((resolve, reject) =>
    sign('sha256', content, privateKey, (error) => {
      signed++
      if (error === null) resolve()
      else reject(error)
    }),
  )

const end = performance.now() + seconds * 1000
const started = performance.now()
const before = process.cpuUsage()
await Promise.all(
  Array.from({ length: 16 }, async () => {
    while (performance.now() < end) await one()
  }),
)
const { user, system } = process.cpuUsage(before)
const perSecond = signed / ((performance.now() - started) / 1000)
console.log(JSON.stringify({ perSecond, cpuMicros: (user + system) / signed }))

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { keyIn } from '#keys/key-ring.ts'
import { openStorage } from '#server/composition/stores.ts'
import { onEachDatabase, temporaryFolder } from '#testing/databases/databases.ts'
import { issuerSite } from '#testing/sts/issuer-site.ts'
import { SetClock, tokenIssuer, tokenKeyRings } from '#testing/sts/token-keys-fixture.ts'
import { KeyKeeper, noKeyMeter } from './key-keeper.ts'
import { folderPublisher } from './publishers.ts'

onEachDatabase('keys of several gateways', (freshUrl) => {
  /** Gateways that share a database, a web site and a clock. */
  async function gateways(count: number) {
    const [url, folder, clock] = [await freshUrl(), temporaryFolder(), new SetClock()]
    const site = await issuerSite(folder)
    const issuer = tokenIssuer({ issuer: site.url, destinations: [{ type: 'folder', folder }] })
    const open = async (worker: string) => {
      const storage = openStorage({ url, clock: systemClock, log: silentLogger })
      onTestFinished(() => storage.close())
      await storage.ready()
      const store = storage.keys
      const rings = tokenKeyRings({ store, clock, issuers: [issuer] })
      const parts = { rings, store, worker, clock: clock.read, log: silentLogger, meter: noKeyMeter }
      return { rings, keeper: new KeyKeeper({ ...parts, open: () => folderPublisher(folder) }) }
    }
    const opened = await Promise.all(Array.from({ length: count }, (_, i) => open(`gateway ${i}`)))
    const published = async () =>
      (JSON.parse(await readFile(join(folder, 'certs'), 'utf8')) as { keys: { kid: string }[] }).keys.map(
        ({ kid }) => kid,
      )
    return { opened, issuer, clock, published }
  }

  test('create one first key and one next key together', async () => {
    const { opened } = await gateways(4)
    const first = await Promise.all(opened.flatMap(({ rings }) => [rings.active('aws'), rings.active('aws')]))
    expect(new Set(first.map(({ kid }) => kid)).size).toBe(1)
    const rotations = await Promise.allSettled(opened.map(({ rings }) => rings.rotate('aws')))
    expect(rotations.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const each of rotations)
      if (each.status === 'rejected') expect(each.reason).toMatchObject({ code: 'CONFLICT' })
  })

  test('complete a rotation together, and none signs with an unknown key', async () => {
    const { opened, issuer, clock, published } = await gateways(3)
    const everybody = () => Promise.all(opened.map(({ keeper }) => keeper.pass(issuer)))
    await everybody()
    const [one] = opened
    const old = (await one?.rings.active('aws'))?.kid
    await one?.rings.rotate('aws')
    const signed = new Set<string>()
    const known: { at: number; kids: readonly string[] }[] = []
    for (let minute = 0; minute < 50; minute++) {
      const outcomes = await everybody()
      expect(outcomes.some((outcome) => outcome !== undefined)).toBe(true)
      known.push({ at: clock.now, kids: await published() })
      // The oldest copy that may be in use: as old as the response's max-age of 300 s.
      const held = known.filter(({ at }) => at > clock.now - 300_000)
      for (const { rings } of opened) {
        const { kid } = await rings.active('aws')
        signed.add(kid)
        for (const copy of held) expect(copy.kids).toContain(kid)
      }
      clock.pass(60)
    }
    expect(signed.size).toBe(2)
    expect([...signed][0]).toBe(old)
    expect(await published()).toEqual([[...signed][1]])
    for (const { rings } of opened) expect(keyIn(await rings.tend('aws'), 'active')?.kid).toBe([...signed][1])
  })
})

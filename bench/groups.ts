import { peoplePath } from './configuration.ts'
import type { MeasuredGateway } from './gateway.ts'
import { runLoad } from './load.ts'
import { type List, readJson, scimRequests, someIds } from './requests.ts'
import { bigGroup } from './seed.ts'

export interface GroupFigures {
  readonly oneSmallMs: number
  readonly oneLargeMs: number
  readonly manyMs: number
}

/** One change of membership in a small and in a large group, and a thousand additions in one request. */
export async function measureGroups(gateway: MeasuredGateway, count: number): Promise<GroupFigures> {
  const requests = scimRequests(gateway, peoplePath)
  const groupId = async (name: string): Promise<string> => {
    const filter = encodeURIComponent(`displayName eq "${name}"`)
    const found = await readJson<List>(gateway, `${peoplePath}/Groups?excludedAttributes=members&filter=${filter}`)
    return found.Resources[0]?.id ?? ''
  }
  const ids = await someIds(gateway, peoplePath, count)
  const one = async (group: string): Promise<number> => {
    // Removed and added in turns, one at a time: the cost of one change when nothing else happens.
    const request = (n: number): string =>
      requests.member(group, n % 2 === 0 ? 'add' : 'remove', [ids[Math.floor(n / 2) % ids.length] ?? ''])
    const load = { port: gateway.port, connections: 1, request, expectedStatus: 204 }
    await runLoad({ ...load, seconds: 2 })
    return (await runLoad({ ...load, seconds: 3 })).p50
  }
  const oneSmallMs = await one(await groupId('empty0'))
  const oneLargeMs = await one(await groupId(bigGroup))
  let manyMs = Number.POSITIVE_INFINITY
  for (const name of ['empty1', 'empty2', 'empty3']) {
    const bytes = requests.member(await groupId(name), 'add', ids.slice(0, 1000))
    manyMs = Math.min(manyMs, await once(gateway, bytes))
  }
  return { oneSmallMs, oneLargeMs, manyMs }
}

async function once({ port }: MeasuredGateway, bytes: string): Promise<number> {
  let sent = false
  const request = (): string => {
    sent = true
    return bytes
  }
  const { p50 } = await runLoad({ port, connections: 1, seconds: 60, request, expectedStatus: 204, until: () => sent })
  return p50
}

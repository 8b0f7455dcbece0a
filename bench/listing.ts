import { peoplePath } from './configuration.ts'
import type { MeasuredGateway } from './gateway.ts'
import { type List, readJson } from './requests.ts'

export interface ListingFigures {
  readonly users: number
  readonly perSecond: number
  /** The growth of the process's own memory from the first tenth to the end. */
  readonly grownMegabytes: number
}

/** Lists every user by cursor. Throws if one is missing or repeated. */
export async function measureListing(gateway: MeasuredGateway, count: number): Promise<ListingFigures> {
  const started = performance.now()
  const seen = new Set<string>()
  let cursor = ''
  let early = 0
  let users = 0
  do {
    const address = `${peoplePath}/Users?count=200&attributes=userName&cursor=${encodeURIComponent(cursor)}`
    const page: List = await readJson<List>(gateway, address)
    for (const { id } of page.Resources) seen.add(id)
    users += page.Resources.length
    if (early === 0 && users >= count / 10) early = gateway.ownMegabytes()
    cursor = page.nextCursor ?? ''
  } while (cursor !== '')
  const seconds = (performance.now() - started) / 1000
  if (seen.size !== users || users < count) throw new Error(`${users} users came, ${seen.size} of them different`)
  return { users, perSecond: users / seconds, grownMegabytes: gateway.ownMegabytes() - early }
}

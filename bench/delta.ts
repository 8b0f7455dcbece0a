import { peoplePath } from './configuration.ts'
import type { MeasuredGateway } from './gateway.ts'
import { runLoad } from './load.ts'
import { type List, readJson, scimRequests, someIds } from './requests.ts'

/** Users that change before the delta is read. */
export const changedUsers = 100

/** The milliseconds to read the users that changed since a time. Throws if the result differs from the changed ones. */
export async function measureDelta(gateway: MeasuredGateway, count: number): Promise<number> {
  const requests = scimRequests(gateway, peoplePath)
  const ids = (await someIds(gateway, peoplePath, count)).slice(0, changedUsers)
  await new Promise((done) => setTimeout(done, 10))
  const since = new Date().toISOString()
  await new Promise((done) => setTimeout(done, 10))
  let sent = 0
  await runLoad({
    port: gateway.port,
    connections: 1,
    seconds: 60,
    request: () => requests.rename(ids[sent] ?? '', `Renamed ${since} ${sent++}`),
    expectedStatus: 200,
    until: () => sent >= ids.length,
  })
  const filter = encodeURIComponent(`meta.lastModified gt "${since}"`)
  const address = `${peoplePath}/Users?count=${changedUsers}&attributes=userName&cursor=&filter=${filter}`
  const found = (await readJson<List>(gateway, address)).Resources.map(({ id }) => id)
  if (found.length !== ids.length || found.some((id) => !ids.includes(id))) {
    throw new Error(`${found.length} users were found to have changed, not the ${ids.length} that did`)
  }
  const load = { port: gateway.port, connections: 1, request: () => requests.get(address), expectedStatus: 200 }
  await runLoad({ ...load, seconds: 1 })
  return (await runLoad({ ...load, seconds: 3 })).p50
}

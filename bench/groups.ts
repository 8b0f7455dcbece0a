import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { peoplePath, writeConfiguration } from './configuration.ts'
import { type MeasuredGateway, startMeasured } from './gateway.ts'
import { runLoad } from './load.ts'
import { median } from './median.ts'
import { connections, turnSeconds, turns } from './paired.ts'
import { type List, readJson, scimRequests, someIds } from './requests.ts'
import { groupOfSize, manyGroups, seedPeople, sizedGroups } from './seed.ts'

interface Cost {
  /** Processor time of the gateway for one request, which does not depend on other load of the machine. */
  readonly cpuMicros: number
}

export interface GroupFigures {
  /** A change of one member, by the size of the group, smallest first: the median time when nothing else happens. */
  readonly one: readonly (Cost & { readonly size: number; readonly p50: number })[]
  /** Changes of one member of different groups, over several connections. */
  readonly different: Cost & { readonly perSecond: number }
  readonly manyMs: number
  readonly whole: { readonly size: number; readonly ms: number; readonly grownMegabytes: number }
}

/**
 * One change of membership in groups of several sizes and in different groups at once, a thousand additions in one
 * request, and all members of the largest group.
 */
export async function measureGroups(folder: string, quickstart: string): Promise<GroupFigures> {
  const config = writeConfiguration(join(folder, 'groups'), quickstart)
  const data = join(folder, 'grouped')
  await seedPeople(data, Math.max(...sizedGroups))
  const gateway = await startMeasured(config, data)
  try {
    return await measure(gateway)
  } finally {
    await gateway.stop()
    rmSync(data, { recursive: true, force: true })
  }
}

async function measure(gateway: MeasuredGateway): Promise<GroupFigures> {
  const one = await oneMember(gateway)
  const requests = scimRequests(gateway, peoplePath)
  const ids = await someIds(gateway, peoplePath, Math.max(...sizedGroups))
  let manyMs = Number.POSITIVE_INFINITY
  for (const name of ['empty1', 'empty2', 'empty3']) {
    const bytes = requests.member(await groupId(gateway, name), 'add', ids.slice(0, 1000))
    manyMs = Math.min(manyMs, await once(gateway, bytes))
  }
  return {
    one,
    different: await differentGroups(gateway, ids),
    manyMs,
    whole: await wholeGroup(gateway, Math.max(...sizedGroups)),
  }
}

/** Turns alternate between the groups, each with another one first, since a shared machine is not equally fast all the time. */
async function oneMember(gateway: MeasuredGateway): Promise<GroupFigures['one']> {
  const requests = scimRequests(gateway, peoplePath)
  // These are in all the groups, so that every request is a change.
  const members = await memberIds(gateway, await groupId(gateway, groupOfSize(Math.min(...sizedGroups))))
  const groups = await Promise.all(
    sizedGroups.map(async (size) => ({ size, id: await groupId(gateway, groupOfSize(size)), sent: 0 })),
  )
  const turn = async (group: (typeof groups)[number], seconds: number): Promise<Cost & { readonly p50: number }> => {
    // Removed and added in turns, one at a time.
    const request = (): string => {
      const n = group.sent++
      const member = members[Math.floor(n / 2) % members.length] ?? ''
      return requests.member(group.id, n % 2 === 0 ? 'remove' : 'add', [member])
    }
    const [cpu, sent] = [gateway.cpuSeconds(), group.sent]
    const end = performance.now() + seconds * 1000
    // Not between a removal and its addition, so that the group keeps its size.
    const until = (): boolean => performance.now() >= end && group.sent % 2 === 0
    const load = { port: gateway.port, connections: 1, request, expectedStatus: 204, until }
    const { p50 } = await runLoad({ ...load, seconds: 60 })
    return { p50, cpuMicros: ((gateway.cpuSeconds() - cpu) * 1e6) / (group.sent - sent) }
  }
  for (const group of groups) await turn(group, 3)
  const figures = new Map(groups.map((group) => [group, [] as (Cost & { readonly p50: number })[]]))
  for (let i = 0; i < turns; i++) {
    for (const group of [...groups.slice(i % groups.length), ...groups.slice(0, i % groups.length)]) {
      figures.get(group)?.push(await turn(group, 2 * turnSeconds))
    }
  }
  return Array.from(figures, ([{ size }, found]) => ({
    size,
    p50: median(found.map(({ p50 }) => p50)),
    cpuMicros: median(found.map(({ cpuMicros }) => cpuMicros)),
  }))
}

async function groupId(gateway: MeasuredGateway, name: string): Promise<string> {
  const filter = encodeURIComponent(`displayName eq "${name}"`)
  const found = await readJson<List>(gateway, `${peoplePath}/Groups?excludedAttributes=members&filter=${filter}`)
  return found.Resources[0]?.id ?? ''
}

interface Members {
  readonly members?: readonly { readonly value: string }[]
}

async function memberIds(gateway: MeasuredGateway, group: string): Promise<string[]> {
  const { members = [] } = await readJson<Members>(gateway, `${peoplePath}/Groups/${group}?attributes=members.value`)
  return members.map(({ value }) => value)
}

/** Each pass over the groups adds a member to all of them, or removes it. */
async function differentGroups(gateway: MeasuredGateway, ids: readonly string[]): Promise<GroupFigures['different']> {
  const requests = scimRequests(gateway, peoplePath)
  const groups: string[] = []
  for (let i = 0; i < manyGroups; i += 100) {
    const page = `count=100&startIndex=${i + 1}&attributes=id&filter=${encodeURIComponent('displayName sw "group"')}`
    groups.push(...(await readJson<List>(gateway, `${peoplePath}/Groups?${page}`)).Resources.map(({ id }) => id))
  }
  let sent = 0
  const request = (): string => {
    const n = sent++
    const op = Math.floor(n / groups.length) % 2 === 0 ? 'add' : 'remove'
    return requests.member(groups[n % groups.length] ?? '', op, [ids[(n % groups.length) % ids.length] ?? ''])
  }
  const load = { port: gateway.port, connections, request, expectedStatus: 204 }
  await runLoad({ ...load, seconds: 4 })
  const [cpu, before] = [gateway.cpuSeconds(), sent]
  const { perSecond } = await runLoad({ ...load, seconds: 5 })
  return { perSecond, cpuMicros: ((gateway.cpuSeconds() - cpu) * 1e6) / (sent - before) }
}

/** The best of several times, and how much the memory of the process grew after the first ones. */
async function wholeGroup(gateway: MeasuredGateway, size: number): Promise<GroupFigures['whole']> {
  const group = await groupId(gateway, groupOfSize(size))
  let before = 0
  let ms = Number.POSITIVE_INFINITY
  for (let i = 0; i < 8; i++) {
    if (i === 3) before = gateway.ownMegabytes()
    const started = performance.now()
    const { length } = await memberIds(gateway, group)
    if (length !== size) throw new Error(`a group of ${size} was answered with ${length} members`)
    ms = Math.min(ms, performance.now() - started)
  }
  return { size, ms, grownMegabytes: Math.max(0, gateway.ownMegabytes() - before) }
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

import { join } from 'node:path'
import { peoplePath } from './configuration.ts'
import { drive, type Server, warm } from './drive.ts'
import { quick, secondsOf } from './effort.ts'
import { startMeasured } from './gateway.ts'
import { keycloakInstall, startKeycloak } from './keycloak.ts'
import { runLoad } from './load.ts'
import { median } from './median.ts'
import { type Cost, connections, medianCost } from './paired.ts'
import type { Peer } from './peer.ts'
import { type RequestMaker, scimRequests, someIds } from './requests.ts'
import { scimgatewayInstall, startScimgateway } from './scimgateway.ts'
import { loginOf } from './seed.ts'
import { exchangeOf, writeStsConfiguration } from './sts.ts'
import { startBenchCluster } from './sts-cluster.ts'
import { rate, row, say } from './table.ts'

const users = quick ? 200 : 5000
const warmSeconds = secondsOf(10)
/** Java compiles for longer. */
const javaWarmSeconds = secondsOf(40)
const turnSeconds = secondsOf(2)
const pods = 200

/** Gatehouse beside other servers on this machine, with the same requests in turns. Names a peer that is missing. */
export async function measurePeers(folder: string, config: string, turns: number): Promise<void> {
  const scim = await startScimgateway(folder)
  if (scim === undefined) say(`scimgateway is not installed. To compare with it:\n  ${scimgatewayInstall}`)
  else await compareScim(folder, config, turns, scim).finally(scim.stop)
  const keycloak = await startKeycloak(folder)
  if (keycloak === undefined) say(`Keycloak is not installed. To compare with it:\n  ${keycloakInstall}`)
  else await compareTokens(folder, turns, keycloak).finally(keycloak.stop)
}

async function compareScim(
  folder: string,
  config: string,
  turns: number,
  peer: Peer & { readonly token: string },
): Promise<void> {
  const gateway = await startMeasured(config, join(folder, 'peers-scim'))
  try {
    const ours = scimRequests(gateway, peoplePath)
    const theirs = scimRequests(peer, '')
    for (const [port, { createOf }] of [
      [gateway.port, ours],
      [peer.port, theirs],
    ] as const) {
      let made = 0
      const request = (): string => createOf(loginOf(made++))
      await runLoad({ port, connections: 4, seconds: 600, request, expectedStatus: 201, until: () => made >= users })
    }
    const ids = await someIds(gateway, peoplePath, users)
    const peerIds = await someIds(peer, '', users)
    const compare = (name: string, one: RequestMaker, other: RequestMaker, status = 200) =>
      inTurns(turns, name, peer, { server: gateway, request: one }, { server: peer, request: other }, status)
    await compare('GET by id', ours.byId(ids), theirs.byId(peerIds))
    await compare('filter userName eq', ours.byLogin(users), theirs.byLogin(users))
    await compare('page of 100', ours.page, theirs.page)
    await compare('create', ours.create, theirs.create, 201)
  } finally {
    await gateway.stop()
  }
}

/** A token exchange beside the nearest that Keycloak has, client credentials: one RS256 signature each. */
async function compareTokens(folder: string, turns: number, peer: Peer & { readonly request: string }): Promise<void> {
  const cluster = await startBenchCluster()
  try {
    const gateway = await startMeasured(writeStsConfiguration(join(folder, 'sts'), cluster), join(folder, 'peers-sts'))
    try {
      const requests = Array.from({ length: pods }, () => exchangeOf(gateway.port, cluster.token()))
      const ours = { server: gateway, request: (n: number): string => requests[n % pods] ?? '' }
      await inTurns(
        turns,
        'token, RS256',
        peer,
        ours,
        { server: peer, request: () => peer.request },
        200,
        javaWarmSeconds,
      )
    } finally {
      await gateway.stop()
    }
  } finally {
    await cluster.close()
  }
}

interface Contender {
  readonly server: Server
  readonly request: RequestMaker
}

async function inTurns(
  turns: number,
  name: string,
  peer: Peer,
  ours: Contender,
  theirs: Contender,
  expectedStatus: number,
  theirWarmSeconds = warmSeconds,
): Promise<void> {
  const load = { connections, expectedStatus }
  const costs: [Cost[], Cost[]] = [[], []]
  const ratios: number[] = []
  await warm(ours.server, { ...load, request: ours.request, seconds: warmSeconds })
  await warm(theirs.server, { ...load, request: theirs.request, seconds: theirWarmSeconds })
  for (let turn = 0; turn < turns; turn++) {
    const one = await drive(ours.server, { ...load, request: ours.request, seconds: turnSeconds })
    const other = await drive(theirs.server, { ...load, request: theirs.request, seconds: turnSeconds })
    costs[0].push(one)
    costs[1].push(other)
    ratios.push(one.perSecond / other.perSecond)
  }
  const [one, other] = costs.map(medianCost)
  row(
    `${name}, Gatehouse`,
    rate(one?.perSecond ?? 0, one?.cpuMicros),
    `${median(ratios).toFixed(2)} times ${peer.name}`,
  )
  row(`${name}, ${peer.name}`, rate(other?.perSecond ?? 0, other?.cpuMicros))
}

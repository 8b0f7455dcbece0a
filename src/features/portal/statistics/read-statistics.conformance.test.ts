import { expect, onTestFinished, test } from 'vitest'
import { IssuerAudit } from '#features/issuer/service/issuer-audit.ts'
import { Journals } from '#features/scim/journal/journals.ts'
import { SharedAudit } from '#features/sts/service/shared-audit.ts'
import { DecisionAudit } from '#features/sts/service/token-issuing.ts'
import { Attributes } from '#identity/attributes.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage } from '#server/composition/stores.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { createStatistics } from './read-statistics.ts'

const now = new Date(Date.UTC(2030, 0, 1, 12))
const clock = () => now
const log = silentLogger

onEachDatabase('statistics of tokens and calls', (freshUrl) => {
  test('decisions of the token service and the issuers, and responses of gateways, are counted at once', async () => {
    const storage = openStorage({ url: await freshUrl(), clock: systemClock, log })
    onTestFinished(() => storage.close())
    await storage.ready()
    const journals = new Journals(storage.journal, log)
    const sts = new DecisionAudit({
      audit: new SharedAudit(storage.audit),
      rateLimits: storage.rateLimits,
      clock,
      log,
    })
    const issuer = new IssuerAudit({ audit: storage.audit, clock, log })

    const call = { endpoint: 'cloud', requestId: 'one request', remoteAddress: '192.0.2.1' }
    const workload = {
      source: 'local',
      namespace: 'shop',
      account: 'web',
      username: 'system:serviceaccount:shop:web',
      podUid: 'p',
      attributes: Attributes.from({}),
      expires: now,
      offline: false,
    }
    const content = { claims: new Map(), subject: 's', ttlSeconds: 60, expires: now }
    const allowed = { rule: 'dn o=x' }
    const issue = (jti: string) => sts.issued(call, workload, { jti, kid: 'k', allowed, content })
    await Promise.all([issue('a'), issue('b'), issue('c')])
    await sts.refused(call, undefined, new GatewayError('ACCESS_DENIED', 'no'))
    const event = {
      issuer: 'people',
      request: { id: 'r', remoteAddress: '192.0.2.1' },
      account: { uid: 'ada', sub: 'ada' },
      clientId: 'wiki',
      how: 'login',
    }
    await issuer.issued({ ...event, jti: 'd' })
    await issuer.refused(event)
    await issuer.ended(event)
    const journal = journals.open({ name: 'scim', keep: 5 })
    onTestFinished(() => journal.close())
    journal.add({
      time: now,
      requestId: 'r',
      caller: 'okta',
      method: 'GET',
      path: '/',
      status: 503,
      millis: 1,
      workflows: [],
    })

    const read = createStatistics(storage.statistics, journals)
    const { parts, callers } = await read({
      from: now,
      to: new Date(now.getTime() + 1000),
      partMillis: 1000,
    })
    expect(parts).toMatchObject([
      {
        tokens: { sts: { issued: 3, refused: 1 }, issuers: { issued: 1, refused: 1 } },
        calls: { answered: 0, refused: 0, failed: 1 },
      },
    ])
    expect(callers).toEqual([{ journal: 'scim', caller: 'okta', calls: { answered: 0, refused: 0, failed: 1 } }])
  })
})

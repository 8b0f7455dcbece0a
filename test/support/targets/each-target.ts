import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { afterAll, beforeAll, describe, inject, onTestFinished } from 'vitest'
import { databaseTarget } from '#adapters/targets/database/database.ts'
import { Passwords } from '#adapters/targets/database/password-hash.ts'
import plugin from '#adapters/targets/plugin/plugin.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { Target } from '#sdk/target/target.ts'
import { openStorage } from '#server/composition/stores.ts'
import { onEachDatabase, onEachEmptyDatabase } from '#testing/databases/databases.ts'
import { applicationParams, makeApplication, openTarget } from '#testing/databases/sql-schema.ts'
import { newBranch, openLdap } from '#testing/ldap/ldap-target.ts'
import { type Slapd, sharedSlapd } from '#testing/ldap/slapd.ts'
import { leastCost } from '#testing/login/least-cost.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues } from '#testing/modules/fake-parse.ts'
import { type ScimBehind, scimBehind } from '#testing/scim/scim-behind.ts'
import { freshBehind, openTargetOn } from '#testing/scim/scim-target-fixture.ts'
import { asSteps } from '#testing/targets/as-steps.ts'
import { type CrmApplication, crmParams, openWebhook, startCrmApplication } from '#testing/targets/crm-application.ts'

export interface EachTarget {
  readonly target: Target
  /** Attributes that it stores unchanged: one with several values, and one with a single value. */
  readonly several: string
  readonly single: string
  /** The gateway's name for the login. */
  readonly login: string
  /** An attribute of groups. */
  readonly ofGroups: string
}

/** Describes a suite once for each kind of target with lookups; `open` gives a test its own target. */
export function onEachTarget(name: string, suite: (open: () => Promise<EachTarget>) => void): void {
  const opened = (target: Target, names: Partial<EachTarget> = {}): EachTarget => {
    onTestFinished(async () => target.close?.())
    return {
      several: 'mail',
      single: 'phone',
      login: 'uid',
      ofGroups: 'description',
      ...names,
      target: asSteps(target),
    }
  }

  onEachDatabase(`${name}, in the database target`, (freshUrl) =>
    suite(async () => {
      const storage = openStorage({ url: await freshUrl(), clock: systemClock, log: silentLogger })
      await storage.ready()
      onTestFinished(() => storage.close())
      const passwords = new Passwords(storage.userDirectory({ name: 'people/passwords' }), leastCost)
      return opened(databaseTarget(storage.userDirectory({ name: 'people' }), passwords))
    }),
  )

  onEachEmptyDatabase(`${name}, in tables`, (freshUrl) =>
    suite(async () => {
      const url = await freshUrl()
      await makeApplication(url)
      return opened(await openTarget(url, applicationParams))
    }),
  )

  describe.skipIf(inject('slapd') === '')(`${name}, in OpenLDAP`, () => {
    let slapd: Slapd
    beforeAll(async () => {
      slapd = await sharedSlapd()
    })
    suite(async () => opened(await openLdap(slapd, await newBranch(slapd)), { single: 'title' }))
  })

  describe(`${name}, behind webhooks`, () => {
    let application: CrmApplication
    beforeAll(async () => {
      application = await startCrmApplication()
    })
    afterAll(() => application?.stop())
    suite(async () => opened(await openWebhook(crmParams({ url: application.url }))))
  })

  describe(`${name}, behind a second gateway`, () => {
    let behind: ScimBehind
    beforeAll(async () => {
      behind = await scimBehind()
    })
    suite(async () => {
      await freshBehind(behind)
      return opened(await openTargetOn(behind), {
        several: 'emails.value',
        single: 'title',
        login: 'userName',
        ofGroups: 'externalId',
      })
    })
  })

  describe(`${name}, in a plug-in`, () => {
    suite(async () => {
      const javaScript = readFileSync('examples/plugin-target/target.ts', 'utf8')
      const prepared = plugin.prepare(fakeParams({ javaScript }), noIssues(), fakeParseContext(tmpdir()))
      return opened(await prepared.create({ ...fakeModuleHost(), name: 'crm' }))
    })
  })
}

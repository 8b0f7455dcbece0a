import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { afterAll, beforeAll, describe, inject, onTestFinished } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { Passwords } from '#modules/shared/passwords/passwords.ts'
import { databaseTarget } from '#modules/targets/database/database.ts'
import plugin from '#modules/targets/plugin/plugin.ts'
import type { Target } from '#sdk/target/target.ts'
import { openStorage } from '#storage/open.ts'
import { asSteps } from '#testing/as-steps.ts'
import { type CrmApplication, crmParams, openWebhook, startCrmApplication } from '#testing/crm-application.ts'
import { onEachDatabase, onEachEmptyDatabase } from '#testing/databases.ts'
import { fakeModuleHost } from '#testing/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues } from '#testing/fake-parse.ts'
import { newBranch, openLdap } from '#testing/ldap-target.ts'
import { type ScimBehind, startScimBehind } from '#testing/scim-behind.ts'
import { freshBehind, openTargetOn } from '#testing/scim-target-fixture.ts'
import { type Slapd, startSlapd } from '#testing/slapd.ts'
import { applicationParams, makeApplication, openTarget } from '#testing/sql-schema.ts'

export interface EachTarget {
  readonly target: Target
  /** Attributes that it stores unchanged: one with several values, and one with a single value. */
  readonly several: string
  readonly single: string
  /** The gateway's name for the login. */
  readonly login: string
}

/** Describes a suite once for each kind of target with lookups; `open` gives a test its own target. */
export function onEachTarget(name: string, suite: (open: () => Promise<EachTarget>) => void): void {
  const opened = (target: Target, names: Partial<EachTarget> = {}): EachTarget => {
    onTestFinished(async () => target.close?.())
    return { several: 'mail', single: 'phone', login: 'uid', ...names, target: asSteps(target) }
  }

  onEachDatabase(`${name}, in the database target`, (freshUrl) =>
    suite(async () => {
      const storage = openStorage({ url: await freshUrl(), clock: systemClock, log: silentLogger })
      await storage.ready()
      onTestFinished(() => storage.close())
      const passwords = new Passwords(storage.userDirectory({ name: 'people/passwords' }))
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
      slapd = await startSlapd()
    })
    afterAll(() => slapd?.stop())
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
      behind = await startScimBehind()
    })
    afterAll(() => behind?.stop())
    suite(async () => {
      await freshBehind(behind)
      return opened(await openTargetOn(behind), { several: 'emails.value', single: 'title', login: 'userName' })
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

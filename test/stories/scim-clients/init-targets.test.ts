import { readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject } from 'vitest'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { newBranch } from '#testing/ldap/ldap-target.ts'
import { startSlapd } from '#testing/ldap/slapd.ts'
import { describeInit, type InitSystem } from '#testing/scim/init-target.ts'
import { startScimServer } from '#testing/scim/scim-client.ts'
import { crmSecrets, startCrmApplication } from '#testing/targets/crm-application.ts'
import { providerSuites } from './provider-suites.ts'

const systems: readonly InitSystem[] = [
  { name: 'without a target', open: async () => ({ args: [] }) },
  {
    name: 'sql on SQLite',
    open: async () => {
      const folder = await mkdtemp(join(tmpdir(), 'gatehouse-tables-'))
      return {
        args: ['--target', 'sql', '--create-target', '--target-url', `sqlite:${join(folder, 'crm.db')}`],
        close: () => rm(folder, { recursive: true, force: true }),
      }
    },
  },
  {
    name: 'sql on PostgreSQL',
    isThere: () => postgresUrl() !== '',
    open: async () => ({ args: ['--target', 'sql', '--create-target', '--target-url', await freshSchema()] }),
  },
  {
    name: 'ldap',
    isThere: () => inject('slapd') !== '',
    open: async () => {
      const slapd = await startSlapd({ config: true })
      const [base, other] = [await newBranch(slapd), await newBranch(slapd)]
      const where = ['--target-base', base, '--target-user', slapd.adminDn]
      return {
        args: ['--target', 'ldap', '--create-target', '--target-url', slapd.url, ...where],
        secret: slapd.adminPassword,
        prepare: async (folder) => {
          await slapd.add(join(folder, 'target-schema.ldif'), 'cn=config')
          // --create-target created these below the base.
          const entries = join(folder, 'target-entries.ldif')
          writeFileSync(entries, readFileSync(entries, 'utf8').replaceAll(base, other))
          await slapd.add(entries)
        },
        close: () => slapd.stop(),
      }
    },
  },
  {
    name: 'webhook',
    open: async () => {
      const application = await startCrmApplication()
      return {
        args: ['--target', 'webhook', '--target-url', application.url],
        secret: crmSecrets.bearerToken,
        prepare: async (folder) => {
          // This application also requires a signature.
          writeFileSync(join(folder, 'config/secrets/accounts/signing'), crmSecrets.signingSecret)
          const file = join(folder, 'config/target.yaml')
          const signing = '    - name: signingSecret\n      secretName: accounts\n      secretKey: signing\n'
          writeFileSync(file, `${readFileSync(file, 'utf8')}${signing}`)
        },
        close: () => application.stop(),
      }
    },
  },
  {
    name: 'scim',
    open: async () => {
      const server = await startScimServer()
      const other = server.client('/scim/v2')
      return {
        args: ['--target', 'scim', '--target-url', other.base],
        secret: other.token,
        close: async () => void (await server.process.stop()),
      }
    },
  },
]

for (const system of systems) describeInit(system, providerSuites)

import { resolve } from 'node:path'
import { DatabaseTarget } from '#modules/targets/database/database-target.ts'
import { loadSeed } from '#modules/targets/database/seed.ts'
import { configuredFile } from '#sdk/configured-file.ts'
import { text } from '#sdk/parameter-types.ts'
import { readParameters } from '#sdk/parameters.ts'
import { databaseSystem, openPasswords } from '#sdk/passwords.ts'
import { defineTarget } from '#sdk/target.ts'

const parameters = {
  directory: text({
    about: 'The name under which its users and groups are stored in the database; the name of the target when absent.',
  }),
  url: text({
    about:
      '`postgres://…`, or `sqlite:` and a file, relative to the configuration folder; the database of Gatehouse itself when absent.',
    secret: true,
  }),
  seed: text({
    about:
      'A JSON file in the configuration folder with users and groups, loaded once, while there are no users. For demonstrations.',
  }),
}

/** Users, groups, memberships and passwords in a database: the one Gatehouse runs on, or another. */
export default defineTarget({
  className: 'targets.Database',
  parameters,
  parse: (params, issues, context) => {
    const { directory, url, seed } = readParameters(parameters, params, issues, context)
    const file = url === undefined ? undefined : /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(url)?.[1]
    if (url !== undefined && file === undefined && !/^postgres(ql)?:\/\/./.test(url)) {
      issues.error(params.pathOf('url'), '"url": must start with postgres:// or sqlite:')
    }
    return {
      directory,
      url: file === undefined ? url : `sqlite:${resolve(context.folder, file)}`,
      seed: seed === undefined ? undefined : configuredFile('seed', seed, params, issues, context),
    }
  },
  create: async ({ directory, url, seed }, host) => {
    const people = { name: directory ?? host.name, ...(url === undefined ? {} : { url }) }
    const users = await host.openUserDirectory(people)
    const target = new DatabaseTarget(users, await openPasswords(host, people), {
      auditsWithin: url === undefined,
      system: databaseSystem(people),
    })
    try {
      if (seed !== undefined) await loadSeed(seed, users, host.log)
    } catch (error) {
      await target.close()
      throw error
    }
    return target
  },
})

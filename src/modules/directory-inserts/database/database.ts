import { configuredFile } from '#modules/shared/passwords/configured-file.ts'
import { databaseSystem, openPasswords } from '#modules/shared/passwords/passwords.ts'
import { layoutParameters, parseLayout } from '#sdk/directory/account-layout.ts'
import { defineDirectoryInsert } from '#sdk/directory/directory-insert.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { DatabaseInsert } from './database-insert.ts'
import { loadDemoPasswords } from './demo-passwords.ts'

const parameters = {
  directory: text({
    about: 'The name under which its users and groups are stored in the database; the name of the insert when absent.',
  }),
  demoPasswords: text({
    about:
      'A JSON file in the configuration folder with passwords by login, set once, while no user has a password. For demonstrations: they work on a loopback listener only.',
  }),
  ...layoutParameters,
}

/** People who log in, their groups and passwords, in the database that Gatehouse runs on. */
export default defineDirectoryInsert({
  className: 'directory.Database',
  parameters,
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    const { directory, demoPasswords } = given
    return {
      directory,
      layout: parseLayout(given, params, issues),
      demoPasswords:
        demoPasswords === undefined
          ? undefined
          : configuredFile('demoPasswords', demoPasswords, params, issues, context),
    }
  },
  create: async ({ directory, layout, demoPasswords }, host) => {
    const name = directory ?? host.name
    const users = await host.openUserDirectory({ name })
    const passwords = await openPasswords(host, { name })
    const insert = new DatabaseInsert(users, passwords, layout(host.suffix), databaseSystem({ name }))
    try {
      if (demoPasswords !== undefined) insert.demo = await loadDemoPasswords(demoPasswords, insert, passwords, host)
    } catch (error) {
      await insert.close()
      throw error
    }
    return insert
  },
})

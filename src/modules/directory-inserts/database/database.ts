import { layoutParameters, parseLayout } from '#sdk/account-layout.ts'
import { defineDirectoryInsert } from '#sdk/directory-insert.ts'
import { text } from '#sdk/parameter-types.ts'
import { readParameters } from '#sdk/parameters.ts'
import { DatabaseInsert } from './database-insert.ts'
import { Passwords } from './passwords.ts'

const parameters = {
  directory: text({
    about: "The name space of its people and groups within Gatehouse's database; the insert's own name when absent.",
  }),
  ...layoutParameters,
}

/** People who log in, their groups and passwords, in the database that Gatehouse runs on. */
export default defineDirectoryInsert({
  className: 'directory.Database',
  parameters,
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    return { directory: given.directory, layout: parseLayout(given, params, issues) }
  },
  create: async ({ directory, layout }, host) => {
    const name = directory ?? host.name
    const users = await host.openUserDirectory({ name })
    const passwords = new Passwords(await host.openUserDirectory({ name: `${name}/passwords` }))
    return new DatabaseInsert(users, passwords, layout(host.suffix))
  },
})

import { layoutParameters, parseLayout } from '#sdk/directory/account-layout.ts'
import { AccountsInsert } from '#sdk/directory/accounts-insert.ts'
import { defineDirectoryInsert } from '#sdk/directory/directory-insert.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { hasLookups } from '#sdk/target/target.ts'

const parameters = {
  target: text({
    about: 'The target with the users and groups; it must have look-ups.',
    required: true,
    reference: 'target',
  }),
  ...layoutParameters,
}

/** The users and groups of a target. */
export default defineDirectoryInsert({
  className: 'directory.Target',
  parameters,
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    return { target: given.target, layout: parseLayout(given, params, issues) }
  },
  create: ({ target: name, layout }, { targets, suffix }) => {
    const target = targets.get(name)
    if (!hasLookups(target)) throw new Error(`the target "${name}" has no look-ups, so no user can be found in it`)
    return new AccountsInsert(target, layout(suffix), name)
  },
})

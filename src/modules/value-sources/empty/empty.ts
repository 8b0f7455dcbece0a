import { defineValueSource } from '#sdk/mapper/mapper-module.ts'

/** No list at all: whatever is typed is taken, as far as the field's own rules go. */
export default defineValueSource({
  className: 'sources.Empty',
  aliases: ['com.tremolosecurity.scalejs.register.dynamicSource.EmptySource'],
  parameters: {},
  parse: () => ({}),
  create: () => ({ list: async () => [], check: async () => undefined }),
})

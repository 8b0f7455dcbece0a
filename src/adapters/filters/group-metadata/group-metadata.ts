import { defineFilter } from '#sdk/filter/filter.ts'
import { flag, text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'

const parameters = {
  target: text({ about: 'The Kubernetes target whose cluster has the objects.', requirement: 'with `namespace`' }),
  namespace: text({ about: 'Their namespace.', requirement: 'with `target`' }),
  extIsDN: flag({
    about: 'Not needed: names of other systems are compared as distinguished names where they are some.',
  }),
}

/**
 * Adds the GroupMetaData objects of a cluster to those of the configuration. The objects are for workflows: a request
 * passes as if the filter were not there.
 */
export default defineFilter({
  className: 'filters.GroupMetadata',
  aliases: ['com.tremolosecurity.proxy.filters.SetupGroupMetadataWatch'],
  parameters,
  parse: (params, issues, context) => {
    const { target = '', namespace = '' } = readParameters(parameters, params, issues, context)
    if (target === '' && namespace === '') return
    if (target === '') issues.error(params.pathOf('target'), '"target" is required where "namespace" is given')
    if (namespace === '') issues.error(params.pathOf('namespace'), '"namespace" is required where "target" is given')
    context.refer('target', target, params.pathOf('target'), 'warning')
    context.addGroupSource?.({ target, namespace })
  },
  answers: false,
  hasNoEffect: true,
  create: () => ({ handle: (_exchange, next) => next() }),
})

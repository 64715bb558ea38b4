use super::engine::Step;

/// Begins transactions that read a few rows in the order of an index. The planner does not know how few, nor that rows
/// which others have locked are passed over, and must not get the idea to read and sort all of them. What is off counts
/// as very dear, and dear plans are compiled, which takes longer than all the rest.
pub(super) const BY_INDEX: Step<'_> = Step {
    sql: "SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), \
          set_config('enable_sort', 'off', true), set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true)",
    values: &[],
};

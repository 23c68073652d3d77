//! The behaviour suite: what every backend has to do, run over each of them.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod concurrent;
mod model;
mod place;
mod queue;
mod reopen;
mod writes;

/// Makes a test of each named function for each backend.
macro_rules! over_both_backends {
    ($($module:ident::$test:ident,)*) => {
        mod embedded {
            $(#[test] fn $test() { super::$module::$test(&super::place::Place::embedded()); })*
        }
        mod postgres {
            $(#[test] fn $test() { super::$module::$test(&super::place::Place::postgres()); })*
        }
    };
}

over_both_backends! {
    writes::confirm_answers_in_order,
    writes::a_commit_enters_keys_and_queue,
    writes::finished_urls_leave_the_queue_for_the_pages,
    writes::a_note_finished_in_its_own_batch_is_not_queued,
    writes::a_known_key_is_not_entered_again,
    writes::a_repeated_commit_changes_nothing,
    writes::of_two_notes_of_one_key_the_first_counts,
    writes::an_empty_commit_writes_progress,
    writes::large_batches_pass,
    writes::hostile_texts_are_read_back,
    writes::a_nul_poisons_no_batch,
    writes::long_texts_poison_no_batch,
    writes::records_are_bytes,
    writes::counters_count_round_trips,
    queue::order_is_priority_depth_sequence,
    queue::reading_starts_at_from_and_stops_at_the_limit,
    queue::hosts_do_not_mix,
    queue::queued_hosts_counts_and_names_the_first,
    queue::the_greatest_position_fits,
    reopen::everything_survives,
    reopen::the_identity_is_kept,
    reopen::whether_it_is_there_is_told_without_making_it,
    reopen::a_second_opening_is_refused,
    reopen::another_format_is_refused,
    reopen::the_next_sequence_never_goes_back,
    concurrent::commits_and_confirms_do_not_disturb_each_other,
    concurrent::one_key_of_many_threads_is_queued_once,
    model::a_random_history_matches_the_model,
}
